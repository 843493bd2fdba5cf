"""Rules as records: codes, severities, findings, policy, waivers and the registry.

A rule is one record plus one pure function with its docstring as manual page. Codes are forever: registering a
code twice fails at import, and a retired code stays listed with its successor.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import msgspec


class Severity(enum.StrEnum):
    """How strictly a rule is held. Ordered: off < warn < error."""

    OFF = "off"
    WARN = "warn"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return _RANK[self]

    def stricter(self, other: Severity) -> Severity:
        return self if self.rank >= other.rank else other


_RANK = {Severity.OFF: 0, Severity.WARN: 1, Severity.ERROR: 2}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule function yields: the fault and its fix, before severity and policy are known.

    `text` says what is wrong without code or fix ("column price (field 6) cannot go from ... to ...: why");
    `fix` is a full sentence in the imperative. `follows` are the columns whose change alone brings the fault about: a
    finding on each of them takes its place.
    """

    text: str
    fix: str
    field_id: int | None = None
    path: str | None = None
    before: str | None = None
    after: str | None = None
    follows: tuple[int, ...] = ()


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One judged fault. `message` is one line that an engine prints verbatim."""

    code: str
    rule: str
    severity: Severity
    message: str
    fix: str
    spec: str
    field_id: int | None = None
    path: str | None = None
    before: str | None = None
    after: str | None = None
    waived_by: str | None = None

    @property
    def refuses(self) -> bool:
        return self.severity is Severity.ERROR and self.waived_by is None

    def to_json(self) -> dict[str, object]:
        """The wire form of one entry of `error.findings`."""
        out: dict[str, object] = {
            "code": self.code,
            "rule": self.rule,
            "severity": self.severity.value,
            "message": self.message,
            "fix": self.fix,
            "spec": self.spec,
        }
        present = {
            "field-id": self.field_id,
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "waived-by": self.waived_by,
        }
        return out | {key: value for key, value in present.items() if value is not None}


Subject = TypeVar("Subject")


class Rule(Generic[Subject]):
    """A coded rule over some subject (a schema change, later a table's evidence).

    `floor` marks rules that keep metadata readable at all: they can be neither lowered nor waived.
    `conflict` marks rules about a caller who did not see the present state: a refresh and a new attempt cure what they
    refuse.
    """

    __slots__ = ("check", "code", "conflict", "default", "floor", "manual", "replaced_by", "since", "slug", "spec")

    def __init__(
        self,
        code: str,
        slug: str,
        check: Callable[[Subject], Iterator[Fault]] | None,
        *,
        default: Severity,
        floor: bool,
        spec: str,
        since: str,
        manual: str,
        replaced_by: str | None = None,
        conflict: bool = False,
    ) -> None:
        self.code = code
        self.slug = slug
        self.check = check
        self.default = default
        self.floor = floor
        self.spec = spec
        self.since = since
        self.manual = manual
        self.replaced_by = replaced_by
        self.conflict = conflict

    @property
    def retired(self) -> bool:
        return self.check is None

    @property
    def summary(self) -> str:
        return self.manual.strip().split("\n", 1)[0]

    def finding(self, fault: Fault, severity: Severity) -> Finding:
        return Finding(
            code=self.code,
            rule=self.slug,
            severity=severity,
            message=f"{self.code} {self.slug}: {_line(fault.text)}. {_line(fault.fix)}",
            fix=_line(fault.fix),
            spec=self.spec,
            field_id=fault.field_id,
            path=fault.path,
            before=fault.before,
            after=fault.after,
        )


def _line(text: str) -> str:
    """One line of bounded length: names may hold line breaks and be as long as a document."""
    if len(text) > _LINE_CHARS:
        text = f"{text[: _LINE_CHARS * 3 // 4]} ... {text[-_LINE_CHARS // 4 :]}"
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


_LINE_CHARS = 1_000


class Registry(Generic[Subject]):
    """The rules of one subject, by code. Registering a code or slug twice raises at import."""

    def __init__(self) -> None:
        self._rules: dict[str, Rule[Subject]] = {}

    def rule(
        self,
        code: str,
        slug: str,
        *,
        spec: str,
        default: Severity = Severity.ERROR,
        floor: bool = False,
        conflict: bool = False,
        since: str = "0.1.0",
    ) -> Callable[[Callable[[Subject], Iterator[Fault]]], Callable[[Subject], Iterator[Fault]]]:
        """Register the decorated function as the rule `code`; its docstring is the manual page."""

        def register(check: Callable[[Subject], Iterator[Fault]]) -> Callable[[Subject], Iterator[Fault]]:
            self._add(
                Rule(
                    code,
                    slug,
                    check,
                    default=default,
                    floor=floor,
                    spec=spec,
                    since=since,
                    manual=inspect.cleandoc(check.__doc__ or ""),
                    conflict=conflict,
                )
            )
            return check

        return register

    def retire(self, code: str, slug: str, *, replaced_by: str, manual: str) -> None:
        """Keep a code listed after its rule is gone."""
        self._add(
            Rule(
                code,
                slug,
                None,
                default=Severity.OFF,
                floor=False,
                spec="",
                since="",
                manual=manual,
                replaced_by=replaced_by,
            )
        )

    def _add(self, rule: Rule[Subject]) -> None:
        if rule.code in self._rules or any(rule.slug == r.slug for r in self._rules.values()):
            raise ValueError(f"rule {rule.code} {rule.slug} is registered twice")
        self._rules[rule.code] = rule

    def __iter__(self) -> Iterator[Rule[Subject]]:
        return iter(sorted(self._rules.values(), key=lambda rule: rule.code))

    def __len__(self) -> int:
        return len(self._rules)

    def get(self, code: str) -> Rule[Subject] | None:
        return self._rules.get(code.upper())


class Waiver(msgspec.Struct, frozen=True, kw_only=True):
    """Permission for one commit to break one rule on one table; consumed in the commit's own transaction.

    Times are epoch milliseconds.
    """

    waiver_id: str
    table_uuid: str
    code: str
    reason: str
    granted_by: str
    granted_at_ms: int
    expires_at_ms: int
    used_at_ms: int | None = None


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Effective strictness for one table.

    `set_by_api` (from the policy API, nearest scope already resolved) may lower or raise; `tightened` (properties of
    table and namespace) may only raise. Floor rules ignore lowering and waivers.
    """

    set_by_api: Mapping[str, Severity] = {}
    tightened: Mapping[str, Severity] = {}
    waivers: tuple[Waiver, ...] = ()

    def severity(self, rule: Rule[Subject]) -> Severity:
        level = rule.default
        chosen = self.set_by_api.get(rule.code)
        if chosen is not None:
            level = level.stricter(chosen) if rule.floor else chosen
        raised = self.tightened.get(rule.code)
        return level if raised is None else level.stricter(raised)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Findings under a policy, refusing ones first, and the waivers that an accepted commit consumes."""

    findings: tuple[Finding, ...] = ()
    waivers_used: tuple[Waiver, ...] = ()

    @property
    def refused(self) -> bool:
        return any(f.refuses for f in self.findings)


def verdict(faults: Iterable[tuple[Rule[Subject], Fault]], policy: Policy, now_ms: int) -> Verdict:
    """Turn faults into findings under `policy`; `now_ms` (epoch ms) decides which waivers still hold."""
    live = {w.code: w for w in policy.waivers if w.used_at_ms is None and now_ms < w.expires_at_ms}
    findings: list[Finding] = []
    used: dict[str, Waiver] = {}
    for rule, fault in faults:
        severity = policy.severity(rule)
        if severity is Severity.OFF:
            continue
        finding = rule.finding(fault, severity)
        waiver = live.get(rule.code)
        if severity is Severity.ERROR and waiver is not None and not rule.floor:
            finding = msgspec.structs.replace(finding, waived_by=waiver.waiver_id)
            used[waiver.waiver_id] = waiver
        findings.append(finding)
    findings.sort(key=lambda f: (not f.refuses, -f.severity.rank, f.code, f.field_id or 0))
    return Verdict(findings=tuple(findings), waivers_used=tuple(used.values()))
