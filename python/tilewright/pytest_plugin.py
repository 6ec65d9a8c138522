"""What `pip install` adds to pytest: --without-gpu. The package is imported only where it is asked for."""


def pytest_addoption(parser):
    parser.getgroup("tilewright").addoption("--without-gpu", action="store_true", help='what says "cuda" runs on the CPU, by Tilewright: kernels, and tensors of torch')


def pytest_load_initial_conftests(early_config, parser, args):
    # Before any conftest.py of the project is imported, which may ask for devices.
    if early_config.known_args_namespace.without_gpu:
        from .pretended_gpu import without_gpu

        without_gpu()


def pytest_report_header(config):
    if config.option.without_gpu:
        from .pretended_gpu import NOTE

        return NOTE
