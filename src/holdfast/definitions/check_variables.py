"""Whether the variables that one scope declares can be told apart and hold what they are given."""

from holdfast.codec import ConversionFailed, encode_text, find_type, is_list, is_object
from holdfast.definitions.document import container_variable
from holdfast.definitions.problems import Problems
from holdfast.definitions.reader import DefinitionInvalid, Json, Reader, unwrap

KNOWN_TYPES = "Use a type such as String, Int32, Boolean or Object."


def check_variables(
    members: Json, at: str, problems: Problems, activity_id: str | None = None
) -> dict[str, str]:
    """The variables of one scope; from their ids to their names."""
    items = unwrap(members.get("variables"))
    declared: dict[str, str] = {}
    names: set[str] = set()
    for index, item in enumerate(items if is_list(items) else []):
        path = f"{at}.variables[{index}]"
        if not is_object(item):
            problems.warn(
                "variable.shape",
                path,
                "This is no variable and is ignored. Remove it, or write "
                '{"id": "v1", "name": "Total", "typeName": "Int32"}.',
                activity_id,
            )
            continue
        try:
            variable = container_variable(item, path)
            _check_variable(Reader(item, path), problems, activity_id)
        except DefinitionInvalid as problem:
            problems.error(
                "definition.invalid", problem.path, f"{problem.problem}. Correct it there.", activity_id
            )
            continue
        for what, key, taken in (("name", variable.name, names), ("id", variable.id, declared)):
            if key and key in taken:
                problems.warn(
                    "variable.duplicate",
                    f"{path}.{what}",
                    f"Another variable of this scope has the {what} {key!r}, and only one of them is found "
                    f"by it. Give each its own.",
                    activity_id,
                )
                break
        names.add(variable.name)
        declared.setdefault(variable.id, variable.name)
    return declared


def _check_variable(reader: Reader, problems: Problems, activity_id: str | None) -> None:
    alias, value = reader.text("typeName") or "Object", reader.get("value")
    kind = find_type(f"{alias}[]" if reader.flag("isArray") else alias)
    if kind is None:
        if activity_id is not None:  # those of the workflow are left out, and `Definition.dropped` tells
            problems.warn(
                "variable.type",
                f"{reader.path}.typeName",
                f"There is no type {alias!r}, so this variable takes any value. {KNOWN_TYPES}",
                activity_id,
            )
        return
    if value in (None, "") or kind.is_object:
        return
    try:
        kind.convert_strictly(value if isinstance(value, str | bool) else encode_text(value))
    except ConversionFailed as problem:
        problems.warn(
            "variable.value",
            f"{reader.path}.value",
            f"{problem} The variable begins with the default of its type instead. Correct the value.",
            activity_id,
        )
