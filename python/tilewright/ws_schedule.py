"""Schedules that name the warps of a kernel and what each of them does: T.annotate_ws_schedule. A schedule changes no result, and
which warps load and which compute is the compiler's; what is written here is checked for its form alone."""
import contextlib
import enum

from .settings import warn_once
from .trace import fail

WSID = "tl.ws_op_id"


class WSSyncKind(enum.Enum):
    """What a role does at a pipeline: the producer acquires a slot and commits it, the consumer waits for it and releases it."""

    PRODUCER_ACQUIRE = 0
    PRODUCER_COMMIT = 1
    CONSUMER_WAIT = 2
    CONSUMER_RELEASE = 3


class WSRole:
    """Warps warps_lo to warps_hi - 1, and the registers that each of their threads may have (0: as many as it has)."""

    def __init__(self, name, *, warps_lo, warps_hi, max_nreg=0):
        self.name, self.warps_lo, self.warps_hi, self.max_nreg = name, int(warps_lo), int(warps_hi), max_nreg


class WSPipeline:
    """Buffers of which there are `depth` versions."""

    def __init__(self, name, buffers, depth):
        self.name, self.buffers, self.depth = name, list(buffers), depth


class WSInstr:
    """One step of a role."""


class WSOpRef(WSInstr):
    """A step that is an operation, or a loop, by its number."""

    def __init__(self, id):
        self.id = id


class WSSync(WSInstr):
    """A step that waits at a pipeline, or lets others go on."""

    def __init__(self, kind, pipeline, stage=0):
        self.kind, self.pipeline, self.stage = kind, pipeline, stage

    @classmethod
    def producer_acquire(cls, pipeline, stage=0):
        return cls(WSSyncKind.PRODUCER_ACQUIRE, pipeline, stage)

    @classmethod
    def producer_commit(cls, pipeline, stage=0):
        return cls(WSSyncKind.PRODUCER_COMMIT, pipeline, stage)

    @classmethod
    def consumer_wait(cls, pipeline, stage=0):
        return cls(WSSyncKind.CONSUMER_WAIT, pipeline, stage)

    @classmethod
    def consumer_release(cls, pipeline, stage=0):
        return cls(WSSyncKind.CONSUMER_RELEASE, pipeline, stage)


class WSScope:
    """The steps of each role in a loop, or in the kernel: WSScope.ROOT."""

    ROOT = "tl.ws_scope_root"

    def __init__(self, id, bodies):
        self.id = id
        self.bodies = {role: [WSOpRef(step) if isinstance(step, str) else step for step in steps] for role, steps in bodies.items()}


class WSSchedule:
    """The roles, pipelines and scopes of a kernel."""

    def __init__(self, num_warps, roles, pipelines, scopes):
        if num_warps <= 0 or num_warps % 4:
            raise AssertionError(f"num_warps must be a positive multiple of 4, got {num_warps}")
        self.num_warps, self.roles, self.pipelines, self.scopes = num_warps, list(roles), list(pipelines), list(scopes)


def annotate_ws_schedule(schedule):
    """Says which warps do what. It changes no result: the compiler decides the roles."""
    if not isinstance(schedule, WSSchedule):
        fail("OperandKind", f"annotate_ws_schedule of {schedule!r}", "give a T.WSSchedule")
    warn_once("annotate_ws_schedule: which warps do what is the compiler's choice; the schedule changes nothing")


def annotate_ws_pipeline_depth(depth_map):
    """Says how many versions of a buffer there are. It changes no result: the compiler decides."""
    for buffer, depth in depth_map.items():
        if int(depth) < 1:
            fail("BadOption", f"annotate_ws_pipeline_depth: depth {depth} of {buffer!r}", "depths are positive")


def ws_op(op_id):
    """A name for the statements in it, by which a schedule calls them."""
    return contextlib.nullcontext()


__all__ = ["WSID", "WSInstr", "WSOpRef", "WSPipeline", "WSRole", "WSSchedule", "WSScope", "WSSync", "WSSyncKind", "annotate_ws_pipeline_depth",
           "annotate_ws_schedule", "ws_op"]  # fmt: skip
