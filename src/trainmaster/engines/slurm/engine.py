"""SlurmEngine: one batch job per attempt, watched through its files and one squeue for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmaster.engines import job_requests
from trainmaster.engines.engine import Ending, EngineContext, Nodes, Place
from trainmaster.engines.plans import read_claim
from trainmaster.engines.slurm import options, states
from trainmaster.engines.slurm.accounting import Accounting
from trainmaster.engines.slurm.commands import Commands, NoAnswer, Refused
from trainmaster.engines.slurm.job import Job
from trainmaster.engines.slurm.pace import Pace
from trainmaster.engines.slurm.site import Here, Site
from trainmaster.job.agent.slurm import GANG
from trainmaster.job.agent.tokens import gpu_token, host_token
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

_SQUEUE_SECONDS = (1.0, 15.0)
# A cluster may have many thousand jobs of others, which are only counted.
_EVERYBODY_SECONDS = (10.0, 60.0)
_FILES_SECONDS = (0.05, 1.0)
# Slurm may list a job a moment later than it said its number.
_MISSED = 2
_SUBMISSIONS = 10
# So long after a controller has started, nodes may not have heard of jobs that it gave them, or have others instead.
_YOUNG_SECONDS = 300.0
# For what an agent wrote on its own machine to be seen here, after Slurm said that its job is over.
_SETTLE_SECONDS = 3.0
# For Slurm to say why it ended a job whose agents have ended already, and for agents nobody reaches to see that they
# are given up.
_EXPLAIN_SECONDS = 60.0
_GIVE_UP_SECONDS = 10.0
_LEAVE_SECONDS = 60.0


class SlurmEngine:
    """Has runs queued and started by one Slurm."""

    queues = True
    shares_files = True
    runs_here = False

    def __init__(self, surroundings: EngineContext, site: Site | None = None) -> None:
        self._site = site or Here()
        self._heard = surroundings.heard
        self._hand_on = surroundings.asked
        self._commands = Commands(self._site.carry_out)
        self._accounting = Accounting(self._commands)
        self._jobs: dict[tuple[str, int], Job] = {}
        self._leaving: dict[str, Job] = {}
        """Those that have left all results, until Slurm says that they are gone."""
        self._listed: list[states.Listed] = []
        self._others: list[states.Listed] = []
        self._squeue = Pace(*_SQUEUE_SECONDS)
        self._everybody = Pace(*_EVERYBODY_SECONDS)
        self._wake = asyncio.Event()
        self._asked = asyncio.Condition()
        self._watcher: asyncio.Task[None] | None = None
        self._site.news = self._hurry
        self.trouble = ""
        """Why Slurm cannot be asked now."""

    def place(self, nodes: Nodes) -> Place:
        """Machines that Slurm will choose: their names are filled in when it has."""
        count, gpus = len(nodes.numbers), range(nodes.target.gpus_per_node)
        return Place(
            hosts=tuple(host_token(number) for number in range(count)),
            gpus=(tuple(gpu_token(number) for number in gpus),) * count,
            cpus=nodes.target.cpus_per_node,
            python=self._python(nodes),
            mpi_options=("--map-by", f"ppr:{nodes.processes_per_node}:node:OVERSUBSCRIBE"),
            mpi_inherits=("SLURM", "PMI"),
            hosts_file=str(nodes.folder.node(0).parent / GANG),
            reaches_dispatcher=False,
            relays_requests=True,
        )

    async def start(self, nodes: Nodes, plans: Sequence[dict[str, Any]], kit: str) -> None:
        job_requests.make_room(nodes)
        job = self._job(nodes)
        if not job.submitted:
            await self._bring(job, plans, Path(kit))
            if job.stopped:
                return
        place = self._site.path(job, job.folder)
        setup = options.settings(nodes.target.options)
        kit_there = self._site.path(job, Path(kit))
        job.script = options.batch_script(self._python(nodes), kit_there, place, nodes.count, setup)
        if not job.submitted:
            await self._submit(job)
        _check_taken(job)
        self._site.follow(job)
        self._watch()

    async def _bring(self, job: Job, plans: Sequence[dict[str, Any]], kit: Path) -> None:
        """Sees to it that the nodes find what they need, unless the run is stopped before."""
        job.bringing = asyncio.ensure_future(self._site.bring(job, plans, kit))
        try:
            await job.bringing
        except asyncio.CancelledError:
            if not job.stopped:
                raise
        finally:
            job.bringing = None

    async def ended(self, nodes: Nodes, number: int) -> None:
        job = self._job(nodes)
        if job.submitted:
            self._site.follow(job)
        self._watch()
        while job.result(number) is None and not job.over.is_set():
            await job.changed.wait()

    async def stop(self, nodes: Nodes) -> None:
        job = self._job(nodes)
        job.stopped = True
        if job.bringing is not None:
            job.bringing.cancel()
        if not job.submitted:
            self._finish(job, "")
        await self._site.stop(job)
        if not job.id:
            return
        # One agent is the batch script itself; several are the tasks of a step. srun, between them, would kill them.
        to_agents = ("--signal=TERM", *(["--batch"] if nodes.count == 1 else []))
        said = [await self._scancel(job, *given) for given in (("--state=PENDING",), to_agents)]
        job.unsaid = None if all(said) else self.stop
        self._hurry()

    async def kill(self, nodes: Nodes) -> None:
        job = self._job(nodes)
        job.stopped = True
        job.unsaid = None if await self._scancel(job) else self.kill
        self._hurry()

    async def sweep(self, nodes: Nodes) -> None:
        """Slurm ends what a job leaves behind. What runs where slurmd is gone sees by a file that it is given up."""
        job = self._job(nodes)
        await self._site.give_up(job)
        await self._scancel(job)
        claims = {number: read_claim(nodes.folder.node(number)) for number in range(nodes.count)}
        claimed = [number for number, claim in claims.items() if claim and not claim.get("cancelled")]
        if claimed and job.state in states.OVER:
            # Where Slurm reaches its machines, it has ended the agents itself: they will write nothing any more.
            lost = await self._down(job)
            claimed = [number for number in claimed if lost is None or number in lost]
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while any(job.result(number) is None for number in claimed) and time.monotonic() < deadline:
            await asyncio.sleep(0.1)

    def waiting_for(self, nodes: Nodes) -> str:
        job = self._job(nodes)
        # Whoever asks is told what is so now, not what was when the files were last looked at.
        self._look_at(job)
        if job.told:
            return ""
        doing = self._site.doing(job)
        if doing:
            return doing
        if job.trouble or self.trouble:
            return f"waiting for Slurm: {job.trouble or self.trouble}"
        listed = next((each for each in self._listed if each.id == job.id), None)
        if listed is None:
            return f"waiting for Slurm (job {job.id})" if job.id else "on its way to Slurm"
        return states.waiting_sentence(
            listed, list({each.id: each for each in (*self._others, *self._listed)}.values())
        )

    async def ending(self, nodes: Nodes) -> Ending | None:
        job = self._job(nodes)
        _check_taken(job)
        if not job.needs_explaining():
            return None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._until_over(job), _EXPLAIN_SECONDS)
        silent = await self._down(job) or job.silent if job.state == "NODE_FAIL" else job.silent
        if job.state == "COMPLETED" and not silent:
            return None
        told = job.printed() if job.state in ("FAILED", "COMPLETED") else ""
        return states.ending(job.id, job.state, job.node_list, told, silent)

    async def _down(self, job: Job) -> dict[int, str] | None:
        """Which of its machines Slurm has lost: an agent there may have lived long enough to leave a result, or live
        still. None if Slurm cannot tell.
        """
        machines = job.machines
        if not machines:
            return None
        command = ("sinfo", "--noheader", "--Node", f"--nodes={','.join(machines)}", "--states=down", "--format=%N")
        try:
            down = set((await self._commands.ask(*command)).split())
        except (NoAnswer, Refused, ComputeTargetException):
            return None
        return {number: name for number, name in enumerate(machines) if name in down}

    async def release(self, nodes: Nodes) -> Mapping[str, str]:
        job = self._jobs.pop((nodes.run_id, nodes.folder.attempt), None) or Job(nodes)
        found = {"slurm.job_id": job.id, **({"slurm.nodes": job.node_list} if job.node_list else {})} if job.id else {}
        known = await self._accounting.facts(job.id) if job.id else {}
        return {**found, **known, **await self._site.forget(job)}

    async def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self._site.close()

    # Submitting

    def _python(self, nodes: Nodes) -> str:
        return str(nodes.target.options.get("python") or self._site.python)

    def _job(self, nodes: Nodes) -> Job:
        key = (nodes.run_id, nodes.folder.attempt)
        if key not in self._jobs:
            self._jobs[key] = Job(nodes)
        return self._jobs[key]

    async def _submit(self, job: Job) -> None:
        """Submits it, now or, if Slurm does not answer, later."""
        job.note()
        job.submitting = True
        try:
            await self._sbatch(job)
        finally:
            job.submitting = False

    async def _sbatch(self, job: Job) -> None:
        output, folder = self._site.path(job, job.folder), self._site.path(job, job.nodes.folder.path)
        command = ["sbatch", "--parsable", *options.sbatch_options(job.nodes, output, folder)]
        try:
            said = await self._commands.ask(*command, given=job.script)
        except NoAnswer as error:
            # It may have come to Slurm or not: the next list of jobs tells.
            job.trouble = str(error)
            self._hurry()
            return
        except Refused as error:
            job.refused = str(error)
            self._finish(job, "")
            return
        job.trouble = ""
        job.note(said.strip().partition(";")[0])
        log.info("run %s: job %s of Slurm", job.nodes.run_id, job.id)
        if job.stopped:
            await self.stop(job.nodes)
        self._hurry()

    async def _scancel(self, job: Job, *given: str) -> bool:
        """By number and name: the number alone may be another job's by now. Returns whether Slurm has heard it."""
        if not job.id:
            return True
        try:
            await self._commands.ask("scancel", "--quiet", *given, f"--name={job.name}", job.id)
        except NoAnswer as error:
            log.warning("scancel of job %s: %s", job.id, error)
            return False
        except Refused as error:
            # The job has ended in between, as a rule.
            log.info("scancel of job %s: %s", job.id, error)
        return True

    # Watching

    def _watch(self) -> None:
        self._hurry()
        if self._watcher is None or self._watcher.done():
            self._watcher = start_task("watching Slurm jobs", self._look)

    def _hurry(self) -> None:
        self._squeue.hurry()
        self._wake.set()

    @property
    def _open(self) -> list[Job]:
        return [job for job in self._jobs.values() if not job.settled]

    async def _look(self) -> None:
        backoff = Backoff(*_FILES_SECONDS, factor=1.5)
        while self._open or self._leaving:
            news = [self._look_safely(job) for job in self._open]
            if any(news):
                backoff.reset()
            if self._squeue.due_in(time.monotonic()) == 0.0:
                await self._ask()
            for job in [each for each in self._open if each.missed >= _MISSED]:
                await self._seek(job)
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), backoff.next_pause())
                backoff.reset()

    def _look_safely(self, job: Job) -> bool:
        """An error is logged when it first occurs: the files of one job must not keep others from being seen."""
        try:
            found = self._look_at(job)
            job.unreadable = ""
        except Exception as error:
            found = False
            if repr(error) != job.unreadable:
                job.unreadable = repr(error)
                log.exception("run %s: the files of its job cannot be read for now", job.nodes.run_id)
        return found

    def _look_at(self, job: Job) -> bool:
        """Whether its files have something new, which is passed on."""
        news = job.look()
        for event in news:
            if event != "ended":
                self._heard(job.nodes.run_id, event)
        asked = list(job_requests.waiting(job.nodes)) if "running" in job.told and not job.settled else []
        for letter in asked:
            self._hand_on(letter)
        if news:
            _notify(job)
        if job.settled and job.id:
            job.leaving_since = time.monotonic()
            self._leaving[job.id] = job
        return bool(news or asked)

    async def _ask(self) -> None:
        """One question for all jobs; now and then of all users, while some of ours wait: how many are ahead?"""
        now = time.monotonic()
        everybody = self._everybody.due_in(now) == 0.0 and any(not job.began for job in self._open)
        try:
            whose = [] if everybody else [f"--user={await self._site.user()}"]
            said = await self._commands.ask("squeue", "--noheader", "--states=all", *whose, f"--format={states.FORMAT}")
        except (NoAnswer, Refused) as error:
            self.trouble = str(error)
            return
        except ComputeTargetException as error:
            self.trouble = error.message
            return
        finally:
            self._squeue.asked(time.monotonic())
        self.trouble = ""
        self._listed = states.parse(said)
        if everybody:
            self._everybody.asked(now)
            self._others = [each for each in self._listed if each.state == "PENDING"]
        by_id = {each.id: each for each in self._listed}
        for job in self._open:
            await self._compare(job, by_id)
        for number, job in list(self._leaving.items()):
            listed = by_id.get(number)
            if listed is None or listed.name != job.name or listed.state in states.OVER:
                del self._leaving[number]
                self._take(job, listed)
            elif time.monotonic() - job.leaving_since > _LEAVE_SECONDS:
                # All its agents have said their last word: nothing of the run is in there any more.
                await self._scancel(job)
        async with self._asked:
            self._asked.notify_all()

    async def _compare(self, job: Job, by_id: Mapping[str, states.Listed]) -> None:
        if job.submitting:
            return
        if not job.id:
            await self._find_or_submit(job)
            return
        listed = by_id.get(job.id)
        # A controller that lost jobs gives their numbers to others.
        if listed is None or listed.name != job.name:
            job.missed += 1
            return
        job.missed = 0
        if listed.state != job.state:
            self._squeue.hurry()
        self._take(job, listed)
        if job.state in states.OVER:
            await self._settle(job)
        elif job.unsaid is not None:
            await job.unsaid(job.nodes)

    async def _find_or_submit(self, job: Job) -> None:
        """For one of which nobody knows whether it was submitted: by its name, in a list that was just asked for."""
        same = [each for each in self._listed if each.name == job.name]
        if same:
            job.trouble = ""
            job.note(same[-1].id)
            self._take(job, same[-1])
            if job.stopped:
                await self.stop(job.nodes)
        elif job.stopped:
            self._finish(job, "")
        elif job.script:
            await self._submit(job)

    def _take(self, job: Job, listed: states.Listed | None) -> None:
        if listed is not None and listed.name == job.name:
            job.state = listed.state
            job.node_list = listed.nodes or job.node_list

    async def _settle(self, job: Job) -> None:
        """It is over in Slurm. What its agents wrote may take a moment to be seen here."""
        await self._site.look(job)
        if job.owner not in ("", job.id):
            # It was submitted twice after all, and this one came second.
            log.info("run %s: job %s of Slurm has it, not %s", job.nodes.run_id, job.owner, job.id)
            job.note(job.owner)
            job.state, job.missed = "", 0
            self._hurry()
            return
        if await self._was_not_launched(job):
            log.warning("run %s: the nodes did not take job %s; it is submitted again", job.nodes.run_id, job.id)
            await self._submit_again(job)
            return
        deadline = time.monotonic() + (_SETTLE_SECONDS if job.began else 0.0)
        self._look_at(job)
        while not job.settled and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            await self._site.look(job)
            self._look_at(job)
        self._finish(job, job.state)

    async def _seek(self, job: Job) -> None:
        """Slurm does not list it. One that never began was lost by a controller that crashed: it is submitted again."""
        known = await self._accounting.state(job.id)
        await self._site.look(job)
        if known in states.OVER or job.began or job.submissions >= _SUBMISSIONS or not job.script:
            job.state = known or "LOST"
            await self._settle(job)
            return
        if known:
            job.missed = 0
            return
        log.warning("run %s: Slurm lost job %s; it is submitted again", job.nodes.run_id, job.id)
        await self._submit_again(job)

    async def _was_not_launched(self, job: Job) -> bool:
        """Whether it was cancelled by Slurm's own hand, as happens to jobs that are to start while slurmctld does."""
        if not states.was_not_launched(job.state, job.node_list, job.began) or job.stopped:
            return False
        if not job.script or job.submissions >= _SUBMISSIONS:
            return False
        try:
            age = states.controller_age(await self._commands.ask("scontrol", "show", "config"))
        except (NoAnswer, Refused, ComputeTargetException):
            return False
        return age is not None and age < _YOUNG_SECONDS

    async def _submit_again(self, job: Job) -> None:
        job.missed, job.state, job.node_list = 0, "", ""
        await self._submit(job)

    def _finish(self, job: Job, state: str) -> None:
        job.state = state or job.state
        job.over.set()
        _notify(job)

    async def _until_over(self, job: Job) -> None:
        """Returns when Slurm has said how the job ended."""
        while job.state not in states.OVER and not job.over.is_set():
            if job.id:
                job.leaving_since = job.leaving_since or time.monotonic()
                self._leaving.setdefault(job.id, job)
            self._watch()
            async with self._asked:
                await self._asked.wait()
            if job.id not in self._leaving:
                return


def _notify(job: Job) -> None:
    """Wakes all who wait for it."""
    job.changed.set()
    job.changed = asyncio.Event()


def _check_taken(job: Job) -> None:
    if job.refused:
        raise ComputeTargetException("Slurm refused the job", cause=job.refused, hint=_hint(job.refused))


def _hint(refusal: str) -> str:
    if "partition" in refusal.lower():
        return "'sinfo' lists the partitions; change the target with SlurmCompute.configuration(partition=...)."
    if "account" in refusal.lower() or "qos" in refusal.lower():
        return "'sacctmgr show associations user=$USER' lists your accounts and QOS."
    return "The same options can be tried with 'sbatch --test-only'."
