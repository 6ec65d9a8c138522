"""Takes out of a program what the language does not allow, until the model can run it."""
from memory import Invalid
from model import Model


def prune(program, budget=20_000_000, rounds=60):
    """(results of the model, how many statements were taken out), or None where nothing sensible is left."""
    taken = 0
    for _ in range(rounds):
        model = Model(program, budget)
        model.at_fault = []
        try:
            results = model.run()
            if not model.at_fault:
                return results, taken
        except Invalid as why:
            program.last = str(why)
            if model.current is None:
                return None
            model.at_fault.append(model.current)
        for stmt in model.at_fault:
            taken += 1
            if not remove(program, stmt) and stmt is model.at_fault[0]:
                return None
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
