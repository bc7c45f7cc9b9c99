"""The four roles, each with the rights of the roles below it, kept as Django groups. A superuser is an admin."""

from __future__ import annotations

from typing import Literal, get_args

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, Group, User

Role = Literal["viewer", "payload_viewer", "operator", "admin"]
ROLES: tuple[Role, ...] = get_args(Role)  # each may do what those before it may

Person = AbstractBaseUser | AnonymousUser


def role_of(person: Person) -> Role | None:
    """The highest role a person has; None for anonymous, switched-off and unassigned people. One query."""
    if not isinstance(person, User) or not person.is_active:
        return None
    if person.is_superuser:
        return "admin"
    names = set(person.groups.values_list("name", flat=True))
    return next((role for role in reversed(ROLES) if role in names), None)


def has_role(person: Person, least: Role) -> bool:
    """Whether a person's role is `least` or a higher one."""
    role = role_of(person)
    return role is not None and ROLES.index(role) >= ROLES.index(least)


def can_view(person: Person) -> bool:
    """Pages without payloads."""
    return has_role(person, "viewer")


def can_see_payloads(person: Person) -> bool:
    """Arguments, outputs and request bodies."""
    return has_role(person, "payload_viewer")


def can_decide(person: Person) -> bool:
    """Status queries and decisions on pending intents."""
    return has_role(person, "operator")


def is_admin(person: Person) -> bool:
    """Everything, people included."""
    return has_role(person, "admin")


def give_role(user: User, role: Role) -> None:
    """Makes `role` the user's only one."""
    groups = [Group.objects.get_or_create(name=name)[0] for name in ROLES]
    user.groups.remove(*groups)
    user.groups.add(groups[ROLES.index(role)])


def make_groups() -> None:
    """The four groups; run after each migrate."""
    for name in ROLES:
        Group.objects.get_or_create(name=name)
