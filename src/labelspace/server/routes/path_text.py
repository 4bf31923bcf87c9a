"""The rest of a path as any text: names of labels, and ids that clients choose, may have slashes and line ends."""

from starlette.convertors import PathConvertor, register_url_convertor


class TextConvertor(PathConvertor):
    """``path`` of Starlette, which ends at the first line end."""

    regex = "(?s:.*)"


register_url_convertor("text", TextConvertor())


def rest_of_path(name: str) -> str:
    """The pattern of a parameter that takes the rest of a path.

    >>> "/labels/" + rest_of_path("label")
    '/labels/{label:text}'
    """
    return f"{{{name}:text}}"
