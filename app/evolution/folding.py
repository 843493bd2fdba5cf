"""One finding for one fault: what only follows from another finding is told there, and not beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from app.evolution.change import Change
from app.rules import Fault, Policy, Rule, Severity

Found = tuple[Rule[Change], Fault]


def folded(found: Iterable[Found], policy: Policy, now_ms: int) -> Iterator[Found]:
    """The faults without those that come from columns whose own fault refuses the commit: these name them instead.

    A cause that policy lowers or a waiver lets pass folds nothing, so that nothing passes with it.
    """
    listed = list(found)
    refusing = {
        fault.field_id
        for rule, fault in listed
        if not fault.follows and fault.field_id is not None and _refuses(rule, policy, now_ms)
    }
    told: dict[int, dict[str, None]] = {}
    kept: list[Found] = []
    for rule, fault in listed:
        if fault.follows and refusing.issuperset(fault.follows):
            for field_id in fault.follows:
                told.setdefault(field_id, {})[f"{rule.code} {rule.slug}"] = None
        else:
            kept.append((rule, fault))
    for rule, fault in kept:
        names = told.get(fault.field_id) if fault.field_id is not None and not fault.follows else None
        if names and _refuses(rule, policy, now_ms):
            consequence = f"{fault.text} (from which {', '.join(names)} would follow)"
            yield rule, msgspec.structs.replace(fault, text=consequence)
        else:
            yield rule, fault


def _refuses(rule: Rule[Change], policy: Policy, now_ms: int) -> bool:
    if policy.severity(rule) is not Severity.ERROR:
        return False
    waived = any(w.code == rule.code and w.used_at_ms is None and now_ms < w.expires_at_ms for w in policy.waivers)
    return rule.floor or not waived
