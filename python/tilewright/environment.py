"""tilelang.env: settings, each from the environment unless the program sets it. Few of them mean something here."""
import json
import math
import os
import types


class Setting:
    """A variable of the environment, read whenever it is asked for; what a program assigns goes first."""

    def __init__(self, key, default=""):
        self.key, self.default, self._forced_value = key, default, None

    def get(self):
        if self._forced_value is not None:
            return self._forced_value
        default = self.default() if callable(self.default) else self.default
        return os.environ.get(self.key, default)

    def __get__(self, instance, owner):
        return self.get()

    def __set__(self, instance, value):
        self._forced_value = value


def resolve_pass_profile_threshold_ms(pass_configs, key, otherwise):
    """The number that pass_configs has for the key, else what otherwise() gives."""
    value = (pass_configs or {}).get(key)
    return otherwise() if value is None else _threshold(value)


def _threshold(value):
    text = str(value).strip()
    try:
        number = float(text or 0)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"TILELANG_PASS_PROFILE_THRESHOLD_MS must be a finite non-negative number, not {value!r}")
    return number


def _cache_folder():
    return os.path.join(os.path.expanduser("~"), ".tilelang", "cache")


class Environment(types.ModuleType):
    """The module and the object: tilelang.env.NAME, and `from tilelang.env import env`."""

    TILELANG_CACHE_DIR = Setting("TILELANG_CACHE_DIR", _cache_folder)
    TILELANG_TMP_DIR = Setting("TILELANG_TMP_DIR")
    TILELANG_PRINT_ON_COMPILATION = Setting("TILELANG_PRINT_ON_COMPILATION", "1")
    TILELANG_DISABLE_CACHE = Setting("TILELANG_DISABLE_CACHE", "0")
    TILELANG_DEFAULT_TARGET = Setting("TILELANG_DEFAULT_TARGET", "auto")
    TILELANG_DEFAULT_EXECUTION_BACKEND = Setting("TILELANG_EXECUTION_BACKEND", "auto")
    TILELANG_PASS_PROFILE_THRESHOLD_MS = Setting("TILELANG_PASS_PROFILE_THRESHOLD_MS", "0")
    CUDA_HOME = ""

    def __init__(self):
        super().__init__("tilelang.env", "Tilewright under TileLang's name.")
        self.env, self.resolve_pass_profile_threshold_ms = self, resolve_pass_profile_threshold_ms

    def get_pass_profile_threshold_ms(self):
        return _threshold(self.TILELANG_PASS_PROFILE_THRESHOLD_MS)

    def get_default_target(self):
        """The target that programs leave open: its name, or a dictionary of JSON."""
        text = self.TILELANG_DEFAULT_TARGET
        if not text.lstrip().startswith("{"):
            return text
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"TILELANG_DEFAULT_TARGET is no JSON ({error}). Use JSON syntax: {{\"kind\": \"cuda\"}}") from None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name.startswith(("is_", "use_")):
            return lambda: False
        return os.environ.get(name, "")


# Where no folder is named, it lies in the cache's.
Environment.__dict__["TILELANG_TMP_DIR"].default = lambda: os.path.join(Environment.TILELANG_CACHE_DIR, "tmp")
