"""What a method is: one object that knows its options, its price, its fit and its draws.

A method settles a `Plan` from public quantities alone, fits a table under it, and makes a
`Sampler` of what was fitted. Everything else (reading, charging, decoding, ledgers, files) is
the same for all methods and asks the object.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from pegsynth.errors import ParameterError
from pegsynth.kernels import arrays
from pegsynth.methods.stored_model import StoredModel, StoredPlan
from pegsynth.options import RowOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pegsynth.auditing.run import Finding
    from pegsynth.codec.code_table import KeptRows
    from pegsynth.methods.counting import ConfidentialTable
    from pegsynth.methods.released import Calibration, Released, Replicates
    from pegsynth.privacy import Budget, Event, Guarantee, Ledger
    from pegsynth.privacy.assumptions import Assumption, Parameters
    from pegsynth.progress import Progress
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema
    from pegsynth.tables.caller_frames import FrameKind

Codes: TypeAlias = arrays.Codes
Rows: TypeAlias = Iterator[Codes]


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """A release, settled: every public choice and price, before any data is read.

    Parameters
    ----------
    method
        Name of the method.
    options
        The options of the method, every gap filled.
    budget
        What was stated.
    """

    method: str
    options: Any
    budget: Budget

    @property
    @abstractmethod
    def events(self) -> tuple[Event, ...]:
        """Everything the ledger will say, in order."""


Options = TypeVar("Options", bound=RowOptions)
P = TypeVar("P", bound=Plan)
F = TypeVar("F")


@dataclass(frozen=True)
class Fitting:
    """A table to be fitted, and what fitting takes beside the plan.

    Parameters
    ----------
    ledger
        What is known so far of the schema and of how the rows were selected.
    """

    table: ConfidentialTable
    schema: Schema
    stream: RandomStream
    ledger: Ledger
    threads: int
    progress: Progress


@dataclass(frozen=True)
class Fitted(Generic[P, F]):
    """What fitting leaves.

    Parameters
    ----------
    content
        The fitted type of the method.
    plan
        The plan with what was really spent, where fitting itself spends.
    ledger
        What was assumed and what no result covers.
    """

    content: F
    plan: P
    ledger: Ledger


@dataclass(frozen=True)
class Model:
    """A fitted table and everything needed to draw from it.

    Parameters
    ----------
    schema
        The public codebook.
    method
        Name of the method that fitted it.
    content
        What was fitted, in the method's own type.
    ledger
        What fitting assumed and what no result covers; priced events are the plan's.
    plan
        The settled release; None for blocks that were counted without a budget.
    columns, dtypes
        Column order and types of the original table, public like its header.
    shapes
        How values lie inside the bins of features that were measured, by name (R21).
    frame
        Whose dataframe was fitted, pandas or pyarrow; None: Polars, or no dataframe.
    counted
        Which rows of the table were counted, where units are bounded (R12): confidential, known
        to the run that fitted it, and never saved.
    """

    schema: Schema
    method: str
    content: Any = field(repr=False)
    ledger: Ledger
    plan: Plan | None = None
    columns: tuple[str, ...] = ()
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    shapes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    counted: KeptRows | None = field(default=None, repr=False, compare=False)
    frame: FrameKind | None = None


class Sampler:
    """Draws rows of one model under one plan. What they cost is settled and charged before.

    Parameters
    ----------
    assumptions
        What this sampler takes for public beside what the plan does.

    Attributes
    ----------
    counters
        Visit counters of every chain, where the method counts visits across draws.
    own_rows
        Rows of every table, where they are those of the original; else None.
    calibration
        What rows are chosen by where analyses were declared (R26); None elsewhere.
    lock
        Keeps draws away from each other that change the counters.
    """

    counters: tuple[NDArray[np.uint32], ...] = ()
    own_rows: int | None = None
    calibration: Calibration | None = None

    def __init__(self, assumptions: tuple[Assumption, ...] = ()) -> None:
        self.assumptions = assumptions
        self.lock = threading.Lock()

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K datasets of n rows as streams of code chunks."""
        return [self.table(rows, stream) for _ in range(datasets)]

    def table(self, rows: int, stream: RandomStream) -> Rows:
        """Return one dataset, for methods that draw each by itself."""
        raise NotImplementedError

    def versions(
        self, rows: int, datasets: int, stream: RandomStream
    ) -> list[tuple[Released, Rows]]:
        """Return what `tables` returns, each dataset with the published counts behind it."""
        raise ParameterError("this method has no declared analyses")

    def replicates(self, codes: Codes, rows: int, count: int, stream: RandomStream) -> Replicates:
        """Return what makes replicate weights of rows, of which `codes` are the first (R28)."""
        raise ParameterError("--replicates requires published counts, and this method has none")


@dataclass(frozen=True)
class Prediction:
    """What a method would do with a budget, for ``pegs plan`` and ``--method auto``.

    Parameters
    ----------
    plan
        The settled release.
    error
        Predicted total variation of pair tables from the original, what drawing adds included.
    pure, stated
        The guarantee without a delta, and at the stated one.
    detail
        What is special about this release, in a few words.
    heads
        Head features per target, where there are any.
    alpha, virtual_rows
        Virtual rows per category, and per entry on average; None where there are none.
    prior_share
        Predicted share of an average draw that does not come from the data; None where
        draws do not mix the two.
    noise
        Standard deviation of the noise on a released block; None where there is none.
    columns_error
        Predicted total variation of one-way tables; None where only pairs are predicted.
    """

    plan: Plan
    error: float
    pure: Guarantee
    stated: Guarantee
    detail: str
    heads: int | None = None
    alpha: float | None = None
    virtual_rows: float | None = None
    prior_share: float | None = None
    noise: float | None = None
    columns_error: float | None = None

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.plan.method


class Method(ABC, Generic[Options, P, F]):
    """One method.

    Parameters
    ----------
    name
        As users spell it.
    summary
        One line for the docs.
    options
        The frozen dataclass of its options.
    has_proof
        Whether any privacy result holds for it; without one it takes no budget.
    released
        Whether fitting publishes what it leaves: then rows cost nothing, a model file may be
        shared, and l may stand beside epsilon (R7).
    on_cluster
        Whether it can be fitted on a cluster, from counts alone.
    resumes
        Whether fitting can go on from a checkpoint.
    pools
        Whether it can measure transitions of a panel pooled over positions (R24).
    fits_unpriced
        Whether a table can be counted before a budget is stated.
    reads_table
        Whether it is fitted to a confidential table, and not to published ones.
    harmless
        For options that it does not take: values that say what it does anyway, where these
        are others than for all methods.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    options: ClassVar[type[RowOptions]]
    has_proof: ClassVar[bool] = True
    released: ClassVar[bool] = False
    on_cluster: ClassVar[bool] = False
    resumes: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    fits_unpriced: ClassVar[bool] = False
    reads_table: ClassVar[bool] = True
    harmless: ClassVar[Mapping[str, tuple[object, ...]]] = MappingProxyType({})

    @abstractmethod
    def settle(self, schema: Schema, budget: Budget, options: Options) -> P:
        """Make every public choice and set every price; no data is read."""

    @abstractmethod
    def fit(self, plan: P, work: Fitting) -> Fitted[P, F]:
        """Look at the table, paying for what is looked at."""

    @abstractmethod
    def sampler(self, model: Model, plan: P, *, threads: int) -> Sampler:
        """Make ready to draw; nothing is drawn yet."""

    @abstractmethod
    def store(self, content: F) -> StoredModel:
        """Return what a model file holds of a fit."""

    @abstractmethod
    def load(self, stored: StoredModel, schema: Schema, plan: P | None) -> F:
        """Rebuild a fit; every number is checked against the schema."""

    def store_plan(self, plan: P) -> StoredPlan:
        """Return what a model file holds of a plan."""
        return StoredPlan(plan.options, plan.budget, plan.events)

    @abstractmethod
    def load_plan(self, stored: StoredPlan, schema: Schema, model: StoredModel) -> P:
        """Rebuild a plan from a model file; what is drawn must be what is charged."""

    def saved_options(self, options: Options) -> Options:
        """Return the options of a model that is saved and sampled later."""
        return options

    def declared_options(self, plan: P) -> Parameters:
        """Return the settled options that this method uses, for the ledger."""
        return {}

    def declared_structure(self, schema: Schema, plan: P) -> tuple[Assumption, ...]:
        """Return what the method takes from the schema beside codebook and rules."""
        return ()

    def lot(self, plan: P) -> int:
        """Return how many rows are paid for together; 0 where every row is paid alone."""
        return 0

    def limited(self, plan: P) -> bool:
        """Whether the plan covers a number of rows and no more."""
        return False

    def looks_at_data(self, content: F) -> bool:
        """Whether drawing looks at confidential counts, so that a seed would undo a guarantee."""
        return True

    def charged(self, schema: Schema, plan: P, rows: int) -> tuple[Event, ...]:
        """Return the events after so many rows; the price follows them where there is no total."""
        return plan.events

    @property
    def predicts(self) -> bool:
        """Whether its error can be predicted, so that ``pegs plan`` lists it."""
        return type(self).predict is not Method.predict

    def predict(self, schema: Schema, plan: P) -> Prediction:
        """Predict what the plan would give, from public figures."""
        raise ParameterError(f"the error of {self.name} cannot be predicted")

    def count(self, options: Options, work: Fitting) -> tuple[F, Ledger]:
        """Count a table for which a budget is stated later, where the method allows it."""
        raise ParameterError(f"{self.name} is fitted with a budget; state one")

    def fixed_keys(self, model: Model) -> dict[str, Any]:
        """Return the options that a model without a budget has settled when it was counted."""
        return {}

    def describe(self, model: Model, *, confidential: bool) -> Iterable[str]:
        """Yield lines on the structure of a fit for ``pegs inspect``.

        Parameters
        ----------
        confidential
            Whether what was read off the data may be shown.
        """
        for feature in model.schema.features:
            yield f"  {feature.name}: {feature.category_count} categories"

    def confidential_figures(self, model: Model) -> list[str]:
        """Return lines of figures read off the data, if the fit holds any."""
        return []

    def audit(self, *, full: bool, threads: int) -> Iterator[Finding]:
        """Check the claims of the shipped code; a method that claims nothing has none to check."""
        return iter(())

    def first_kernels(self) -> None:
        """Load the compiled code that a fit begins with."""


AnyMethod: TypeAlias = Method[Any, Any, Any]
