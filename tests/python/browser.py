"""A browser without a window, for tests of pages: Chromium by its driver. Where there is none, tests are skipped, and say so."""
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update")


def start():
    """A browser, which its user quits."""
    missing = [name for name, path in (("chromium", CHROMIUM), ("chromedriver", DRIVER)) if not path]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} on PATH: apt-get install chromium chromium-driver")
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: tests/requirements.txt")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return selenium.Chrome(options=options, service=Service(DRIVER))


class Page:
    """A page in a browser, with what tests ask of it."""

    def __init__(self, driver, path, width=1400, height=900, theme="light"):
        self.driver = driver
        driver.get("about:blank")
        driver.get_log("browser")
        self.resize(width, height)
        self.prefer(theme)
        driver.get(f"file://{path}")
        assert self.run("return document.documentElement.dataset.ready") == "yes", self.complaints()

    def resize(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def prefer(self, theme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]})

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        return self.driver.find_element("css selector", selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def press(self, element, *keys):
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            element.send_keys(getattr(Keys, key))

    def complaints(self):
        """What the console says: errors of scripts, and what the page's policy kept from it."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def counters(self):
        """Milliseconds from the start of the navigation, by the browser's own clock; elements; bytes."""
        return self.run("""const n = performance.getEntriesByType('navigation')[0];
            return {interactive: n.domInteractive, complete: n.domComplete, elements: document.querySelectorAll('*').length,
                    bytes: n.decodedBodySize || document.documentElement.outerHTML.length}""")

    def looks(self, columns=20, rows=14):
        """What the window shows, coarsely: of each of so many cells the mean red, green and blue, and how much neighbours differ (which
        text does). Fonts and words may differ a little, and leave it nearly as it is."""
        shot = self.driver.get_screenshot_as_base64()
        return self.driver.execute_async_script(_LOOKS, shot, columns, rows)


_LOOKS = """
const [shot, columns, rows, done] = arguments;
const image = new Image();
image.onload = () => {
  const canvas = document.createElement('canvas');
  canvas.width = image.width; canvas.height = image.height;
  const pen = canvas.getContext('2d', {willReadFrequently: true});
  pen.drawImage(image, 0, 0);
  const data = pen.getImageData(0, 0, image.width, image.height).data, found = [];
  const luma = (at) => 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2];
  for (let r = 0; r < rows; ++r) for (let c = 0; c < columns; ++c) {
    const [x0, x1] = [c, c + 1].map((n) => Math.floor(n * image.width / columns)), [y0, y1] = [r, r + 1].map((n) => Math.floor(n * image.height / rows));
    const sums = [0, 0, 0, 0];
    for (let y = y0; y < y1; ++y) for (let x = x0; x < x1; ++x) {
      const at = 4 * (y * image.width + x);
      for (let k = 0; k < 3; ++k) sums[k] += data[at + k];
      if (x + 1 < x1) sums[3] += Math.abs(luma(at) - luma(at + 4));
    }
    found.push(...sums.map((sum) => Math.round(sum / ((x1 - x0) * (y1 - y0)))));
  }
  done(found);
};
image.onerror = () => done(null);
image.src = 'data:image/png;base64,' + shot;
"""
