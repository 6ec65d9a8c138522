"""A pytest plugin: at most so many cases of a file, evenly spaced among those that run, and a record of each."""
import pytest


def _is_skipped(item):
    """Whether a mark says, before the case runs, that it does not."""
    marks = item.iter_markers("skipif")
    return item.get_closest_marker("skip") is not None or any(m.args and m.args[0] is True for m in marks)


class Cases:
    def __init__(self, results, most):
        self.results, self.most, self.errors = results, most, {}

    @pytest.hookimpl(trylast=True)  # behind the project's own hooks, which mark what is to be skipped
    def pytest_collection_modifyitems(self, config, items):
        collected = len(items)
        if 0 < self.most < collected:
            running = [x for x in items if not _is_skipped(x)] or list(items)
            count, most = len(running), min(self.most, len(running))
            at = sorted({round(i * (count - 1) / max(1, most - 1)) for i in range(most)})
            kept = {running[i] for i in at}
            config.hook.pytest_deselected(items=[x for x in items if x not in kept])
            items[:] = [x for x in items if x in kept]
        self.results.write(collected=collected, sampled=len(items))

    def pytest_exception_interact(self, node, call, report):
        if report.when == "collect":  # a file that cannot be imported
            error = call.excinfo.value
            self.results.case(node.name, "fail", 0.0, error.__cause__ or error)

    def pytest_runtest_makereport(self, item, call):
        if call.when != "teardown" and call.excinfo is not None:
            self.errors[item.nodeid] = call.excinfo.value

    def pytest_runtest_logreport(self, report):
        error = self.errors.get(report.nodeid)
        if report.when == "call" or (report.when == "setup" and not report.passed):
            outcome = {"passed": "pass", "failed": "fail", "skipped": "skip"}[report.outcome]
            reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
            self.results.case(report.nodeid.rpartition("::")[2], outcome, report.duration, error if outcome == "fail" else None, reason)
