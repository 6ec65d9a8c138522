"""Tile programs of tilewright.ops that are written in Python: a file for each family, a program for each shape of its work."""
