"""What a kind is: its names on the wire, its columns for ``kubectl get``, and the Python type that holds it.

A kind is declared by decorating its type; the registry then knows it. ``crd=False`` marks kinds that a
Kubernetes API server has of its own (core Node, Lease, …), which the embedded engine serves too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from quorate.api.meta import Resource

R = TypeVar("R", bound="Resource")


class Scope(StrEnum):
    """Whether objects of a kind live in a namespace."""

    CLUSTER = "Cluster"
    NAMESPACED = "Namespaced"


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column: what ``kubectl get`` shows. ``priority`` 1 is shown with ``-o wide`` only."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0
    description: str = ""


#: Last column of every kind.
AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of object. Compared by identity: there is one instance per kind."""

    group: str
    version: str
    name: str
    plural: str
    scope: Scope
    type: type[Resource]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    #: JSON paths, such as ``.spec.nodeName``, usable in field selectors beside metadata.name and metadata.namespace.
    selectable_fields: tuple[str, ...] = ()
    #: Labels that cannot be changed or removed once they are set. A CRD cannot say so; admission does, in both engines.
    immutable_labels: tuple[str, ...] = ()
    status_subresource: bool = True
    crd: bool = True

    @property
    def api_version(self) -> str:
        """``group/version``, or just the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def singular(self) -> str:
        """Lower-case kind name."""
        return self.name.lower()

    @property
    def namespaced(self) -> bool:
        """Whether objects of this kind live in a namespace."""
        return self.scope is Scope.NAMESPACED

    @property
    def qualified_resource(self) -> str:
        """``plural.group``, as error messages and CRD names spell it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __repr__(self) -> str:
        return f"<Kind {self.name}.{self.group or 'core'}/{self.version}>"


_REGISTRY: dict[tuple[str, str], Kind] = {}


def kind(
    *,
    group: str,
    version: str,
    plural: str,
    name: str = "",
    scope: Scope = Scope.CLUSTER,
    short_names: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    selectable_fields: tuple[str, ...] = (),
    immutable_labels: tuple[str, ...] = (),
    status_subresource: bool = True,
    crd: bool = True,
) -> Callable[[type[R]], type[R]]:
    """Declare a kind. Its name is that of its type, unless given. The age column is appended to ``columns``."""

    def register(cls: type[R]) -> type[R]:
        declared = Kind(
            group=group,
            version=version,
            name=name or cls.__name__,
            plural=plural,
            scope=scope,
            type=cls,
            short_names=short_names,
            categories=categories,
            columns=(*columns, AGE),
            selectable_fields=selectable_fields,
            immutable_labels=immutable_labels,
            status_subresource=status_subresource,
            crd=crd,
        )
        key = (group, plural)
        if key in _REGISTRY:
            raise ValueError(f"{declared.qualified_resource} is declared twice")
        _REGISTRY[key] = declared
        cls.KIND = declared
        return cls

    return register


def all_kinds() -> tuple[Kind, ...]:
    """Every declared kind, sorted by group and plural. Import ``quorate.api`` first: it declares them all."""
    return tuple(_REGISTRY[key] for key in sorted(_REGISTRY))


def find_kind(group: str, plural: str) -> Kind | None:
    """The kind with this group and plural name, if declared."""
    return _REGISTRY.get((group, plural))
