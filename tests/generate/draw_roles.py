"""Draws roles that hand tiles over through barriers."""


def draw_roles(generator, scope, body):
    """Not drawn yet."""
