"""Takes out of a program what the language does not allow, until the model can run it."""
from memory import Invalid
from model import Model


def prune(program, budget=20_000_000, rounds=60):
    """(results of the model, how many statements were taken out), or None where nothing sensible is left."""
    for taken in range(rounds):
        model = Model(program, budget)
        try:
            return model.run(), taken
        except Invalid as why:
            if model.current is None or not remove(program, model.current):
                return None
            program.last = str(why)
    return None


def remove(program, stmt):
    for launch in program.launches:
        if _remove(launch.body, stmt):
            return True
    return False


def _remove(body, stmt):
    for i, s in enumerate(body):
        if s is stmt:
            del body[i]
            return True
        for inner in s.bodies:
            if _remove(inner, stmt):
                if not any(s.bodies) or not s.bodies[0] and s.kind != "if":
                    del body[i]
                elif s.kind == "if" and not s.bodies[0]:
                    del body[i]
                return True
    return False
