"""Objects that store the arguments of their constructor under the same names, as in scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, Self

from prade.core.errors import PradeError, closest


class Parameters:
    """A class whose constructor only stores its arguments: they can be read and changed by name."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; the class called with them makes an unfitted copy."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    get_parameters = get_params  # the name in SDV

    def set_params(self, **parameters: Any) -> Self:
        """Change some parameters, for the next `plan` or `fit`; earlier results do not change."""
        known = self.get_params()
        for name in parameters:
            if name not in known:
                hint = closest(name, known) or f"; there are {', '.join(known)}"
                raise PradeError(f"{type(self).__name__} has no parameter {name!r}{hint}")
        for name, value in parameters.items():
            setattr(self, name, value)
        return self
