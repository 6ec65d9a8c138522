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
