"""What a model checks on the header and the tensors of its file, before it trusts them.

``storage.load`` proves that the file is whole; that there is a tensor of that name, type and shape, with numbers in
range, only the model knows. A kernel that reads beyond an array does not raise, so every index from a file passes here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from duilian.errors import ModelFileError

V = TypeVar("V")


class Header(dict[str, Any]):
    """The header of a model file, and the file it came from."""

    def __init__(self, path: Path | str = "model", items: dict[str, Any] | None = None) -> None:
        super().__init__(items or {})
        self.path = path


class Tensors(dict[str, NDArray[Any]]):
    """The tensors of a model file, and the file they came from."""

    def __init__(self, path: Path | str = "model", items: dict[str, NDArray[Any]] | None = None) -> None:
        super().__init__(items or {})
        self.path = path


def require_field(header: dict[str, Any], name: str, kind: type[V]) -> V:
    """header[name], which must be of that type (bool is not an int here)."""
    if name not in header:
        reject(header, f"its header has no {name!r}")
    value = header[name]
    if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
        reject(header, f"{name!r} in its header is {short(value)} where {kind.__name__} was expected")
    return value


def require_names(header: dict[str, Any], name: str) -> tuple[str, ...]:
    """header[name], which must be a list of different strings: tags, sides, templates."""
    values = require_field(header, name, list)
    if not all(isinstance(value, str) for value in values) or len(set(values)) != len(values):
        reject(header, f"{name!r} in its header is {short(values)} where a list of different texts was expected")
    return tuple(values)


def require(
    tensors: dict[str, NDArray[Any]], name: str, dtype: DTypeLike, shape: tuple[int | None, ...]
) -> NDArray[Any]:
    """tensors[name], which must have that dtype and shape (None: any extent)."""
    if name not in tensors:
        reject(tensors, f"it has no tensor {name!r}, only {short(sorted(tensors))}")
    array = tensors[name]
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape, strict=True)
    )
    if array.dtype != np.dtype(dtype) or not fits:
        wanted = "(" + ", ".join("any" if extent is None else str(extent) for extent in shape) + ")"
        reject(tensors, f"tensor {name!r} is {array.dtype} {array.shape}; {np.dtype(dtype)} {wanted} was expected")
    return array


def require_offsets(tensors: dict[str, NDArray[Any]], name: str, n_items: int, n_rows: int | None = None) -> Any:
    """tensors[name] as int64 offsets that run from 0 to n_items and never fall."""
    offsets = require(tensors, name, np.int64, (None if n_rows is None else n_rows + 1,))
    check_offsets(offsets, n_items, name, tensors)
    return offsets


def check_offsets(offsets: NDArray[Any], n_items: int, name: str, source: object = None) -> None:
    """Offsets of a Ragged with n_items items."""
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != n_items or np.any(offsets[1:] < offsets[:-1]):
        reject(source, f"the offsets {name!r} do not run from 0 to {n_items:,} without falling")


def require_ids(
    tensors: dict[str, NDArray[Any]], name: str, dtype: DTypeLike, n: int, lowest: int = 0, shape: Any = (None,)
) -> NDArray[Any]:
    """tensors[name] as index numbers, each from lowest to n - 1."""
    array = require(tensors, name, dtype, shape)
    if array.size and (int(array.min()) < lowest or int(array.max()) >= n):
        reject(tensors, f"tensor {name!r} has numbers outside {lowest} to {n - 1}")
    return array


def require_scores(tensors: dict[str, NDArray[Any]], name: str, dtype: DTypeLike, shape: Any) -> NDArray[Any]:
    """tensors[name] as weights or log probabilities: no NaN, no +inf."""
    array = require(tensors, name, dtype, shape)
    # NaN and +inf are the only values that are not below +inf; min and max need no temporary the size of the weights.
    if array.size and not (array.max() < np.inf):
        reject(tensors, f"tensor {name!r} holds NaN or +infinity")
    return array


def reject(source: object, found: str) -> NoReturn:
    """Say which file is not the model it should be."""
    path = getattr(source, "path", "the model")
    raise ModelFileError(
        f"{path}: {found}. The file is damaged or was made by another program: copy it again, or train it again."
    )


def short(value: object) -> str:
    """A value from a file as a short text for a message, whatever it is."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, list):
        items = [short(item) if not isinstance(item, list | dict) else "..." for item in value[:6]]
        return "[" + ", ".join(items) + (", ..." if len(value) > 6 else "") + "]"
    if isinstance(value, dict):
        return f"an object with {len(value)} fields"
    return "nothing" if value is None else repr(value)
