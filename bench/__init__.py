"""How fast Holdfast is, next to what people would use instead, on the machine at hand.

A subject is a module of this folder that has a function `figures`; `python -m bench` finds it there.
How things are timed is `measure`, what came of it is shown and kept by `report`, `workflows` has the
definitions that are run, and `contenders` does the same work with other means.
"""
