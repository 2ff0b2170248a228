"""One Slurm: jobs are submitted and cancelled, and followed by their files and one squeue for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping

from trainmaster.engines import job_requests
from trainmaster.engines.engine import EngineContext, Nodes
from trainmaster.engines.slurm import options, states
from trainmaster.engines.slurm.accounting import Accounting
from trainmaster.engines.slurm.commands import Commands, NoAnswer, Refused
from trainmaster.engines.slurm.job import Job
from trainmaster.engines.slurm.pace import Pace
from trainmaster.engines.slurm.site import Site
from trainmaster.job.errors import ComputeTargetException
from trainmaster.shared.retry import Backoff
from trainmaster.shared.tasks import start_task

log = logging.getLogger("trainmaster.dispatch")

_SQUEUE_SECONDS = (1.0, 15.0)
# A cluster may have many thousand jobs of other users, which are only counted.
_ALL_USERS_SECONDS = (10.0, 60.0)
_FILES_SECONDS = (0.05, 1.0)
# squeue may list a job a moment after sbatch has returned its number.
_MOST_MISSED = 2
_MOST_SUBMISSIONS = 10
# For this long after a controller has started, nodes may not know the jobs that it gave them, or may have others.
_YOUNG_SECONDS = 300.0
# For what an agent wrote on its own machine to appear here after its job has ended.
_SETTLE_SECONDS = 3.0
_LEAVE_SECONDS = 60.0


class Cluster:
    """Submits and follows the jobs of one Slurm."""

    def __init__(self, context: EngineContext, site: Site) -> None:
        self.site = site
        self._context = context
        self._commands = Commands(site.run_command)
        self.accounting = Accounting(self._commands)
        self._jobs: dict[tuple[str, int], Job] = {}
        self._leaving: dict[str, Job] = {}
        """Jobs whose agents have all left results, until Slurm says that they are gone."""
        self._listed: list[states.Listed] = []
        self._others: list[states.Listed] = []
        self._squeue = Pace(*_SQUEUE_SECONDS)
        self._all_users = Pace(*_ALL_USERS_SECONDS)
        self._wake = asyncio.Event()
        self._queried = asyncio.Condition()
        self._watcher: asyncio.Task[None] | None = None
        self._trouble = ""
        """Why Slurm does not answer now."""
        site.on_news = self._hurry

    def job(self, nodes: Nodes) -> Job:
        """The job of an attempt, known or read from its files."""
        key = (nodes.run_id, nodes.folder.attempt)
        if key not in self._jobs:
            self._jobs[key] = Job(nodes)
        return self._jobs[key]

    def remove(self, nodes: Nodes) -> Job:
        """Forgets the job of an attempt, and returns it."""
        return self._jobs.pop((nodes.run_id, nodes.folder.attempt), None) or Job(nodes)

    async def close(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        await self.site.close()

    # Submitting and cancelling

    async def submit(self, job: Job) -> None:
        """Submits the job now or, if Slurm does not answer, later."""
        job.note()
        job.submitting = True
        try:
            await self._sbatch(job)
        finally:
            job.submitting = False

    async def _sbatch(self, job: Job) -> None:
        output, folder = self.site.path(job, job.folder), self.site.path(job, job.nodes.folder.path)
        command = ["sbatch", "--parsable", *options.sbatch_options(job.nodes, output, folder)]
        try:
            printed = await self._commands.run(*command, stdin=job.script)
        except NoAnswer as error:
            # Slurm may have received it or not: the next list of jobs shows it.
            job.trouble = str(error)
            self._hurry()
            return
        except Refused as error:
            job.refused = str(error)
            self._finish(job)
            return
        job.trouble = ""
        job.note(printed.strip().partition(";")[0])
        log.info("run %s: job %s of Slurm", job.nodes.run_id, job.id)
        if job.stopped:
            await self.stop(job)
        self._hurry()

    async def stop(self, job: Job) -> None:
        """Cancels a job that waits; asks the agents of a job that runs to end their processes."""
        job.stopped = True
        if job.upload is not None:
            job.upload.cancel()
        if not job.submitted:
            self._finish(job)
        await self.site.stop(job)
        if not job.id:
            return
        # One agent is the batch script itself; several are the tasks of a step. A signal to srun would kill them.
        to_agents = ("--signal=TERM", *(["--batch"] if job.nodes.count == 1 else []))
        done = [await self.scancel(job, *given) for given in (("--state=PENDING",), to_agents)]
        job.retry_later = None if all(done) else self.stop
        self._hurry()

    async def kill(self, job: Job) -> None:
        """Cancels the job."""
        job.stopped = True
        job.retry_later = None if await self.scancel(job) else self.kill
        self._hurry()

    async def scancel(self, job: Job, *given: str) -> bool:
        """Runs scancel and returns whether Slurm answered.

        By number and name: if the controller lost the job, its number may be that of another job now.
        """
        if not job.id:
            return True
        try:
            await self._commands.run("scancel", "--quiet", *given, f"--name={job.name}", job.id)
        except NoAnswer as error:
            log.warning("scancel of job %s: %s", job.id, error)
            return False
        except Refused as error:
            # Usually the job has just ended.
            log.info("scancel of job %s: %s", job.id, error)
        return True

    # Asking about one job

    def waiting_for(self, job: Job) -> str:
        """What the job waits for, as a sentence; empty if its agents have started."""
        # Read the files now: the last look may have been a while ago.
        self._look_at(job)
        if job.events:
            return ""
        activity = self.site.activity(job)
        if activity:
            return activity
        if job.trouble or self._trouble:
            return f"waiting for Slurm: {job.trouble or self._trouble}"
        listed = next((each for each in self._listed if each.id == job.id), None)
        if listed is None:
            return f"waiting for Slurm (job {job.id})" if job.id else "being submitted to Slurm"
        by_id = {each.id: each for each in (*self._others, *self._listed)}
        return states.waiting_sentence(listed, list(by_id.values()))

    async def find_lost_nodes(self, job: Job) -> dict[int, str] | None:
        """The nodes whose machines Slurm has lost, with their names; None if Slurm cannot tell.

        An agent there may have left a result, or may still run.
        """
        machines = job.machines
        if not machines:
            return None
        command = ("sinfo", "--noheader", "--Node", f"--nodes={','.join(machines)}", "--states=down", "--format=%N")
        try:
            down = set((await self._commands.run(*command)).split())
        except (NoAnswer, Refused, ComputeTargetException):
            return None
        return {number: name for number, name in enumerate(machines) if name in down}

    async def wait_until_over(self, job: Job) -> None:
        """Returns when Slurm has said how the job ended."""
        while job.state not in states.OVER and not job.over.is_set():
            if job.id:
                job.leaving_since = job.leaving_since or time.monotonic()
                self._leaving.setdefault(job.id, job)
            self.watch()
            async with self._queried:
                await self._queried.wait()
            if job.id not in self._leaving:
                return

    # Watching all jobs

    def watch(self) -> None:
        """Starts to watch, if necessary, and looks at all jobs soon."""
        self._hurry()
        if self._watcher is None or self._watcher.done():
            self._watcher = start_task("watching Slurm jobs", self._watch)

    def _hurry(self) -> None:
        self._squeue.hurry()
        self._wake.set()

    @property
    def _unsettled(self) -> list[Job]:
        return [job for job in self._jobs.values() if not job.settled]

    async def _watch(self) -> None:
        backoff = Backoff(*_FILES_SECONDS, factor=1.5)
        while self._unsettled or self._leaving:
            has_news = [self._look_safely(job) for job in self._unsettled]
            if any(has_news):
                backoff.reset()
            if self._squeue.due_in(time.monotonic()) == 0.0:
                await self._query()
            for job in [each for each in self._unsettled if each.missed >= _MOST_MISSED]:
                await self._search(job)
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), backoff.next_pause())
                backoff.reset()

    def _look_safely(self, job: Job) -> bool:
        """Logs an error when it first occurs: unreadable files of one job must not hide those of others."""
        try:
            has_news = self._look_at(job)
            job.unreadable = ""
        except Exception as error:
            has_news = False
            if repr(error) != job.unreadable:
                job.unreadable = repr(error)
                log.exception("run %s: the files of its job cannot be read for now", job.nodes.run_id)
        return has_news

    def _look_at(self, job: Job) -> bool:
        """Reports what is new in the job's files; returns whether there was anything."""
        news = job.look()
        for event in news:
            if event != "ended":
                self._context.on_event(job.nodes.run_id, event)
        requests = list(job_requests.waiting(job.nodes)) if "running" in job.events and not job.settled else []
        for request in requests:
            self._context.on_request(request)
        if news:
            job.notify()
        if job.settled and job.id:
            job.leaving_since = time.monotonic()
            self._leaving[job.id] = job
        return bool(news or requests)

    async def _query(self) -> None:
        """Runs one squeue for all jobs. While a job waits, it sometimes lists all users: how many jobs are ahead?"""
        now = time.monotonic()
        all_users = self._all_users.due_in(now) == 0.0 and any(not job.began for job in self._unsettled)
        try:
            user = [] if all_users else [f"--user={await self.site.user()}"]
            printed = await self._commands.run(
                "squeue", "--noheader", "--states=all", *user, f"--format={states.FORMAT}"
            )
        except (NoAnswer, Refused) as error:
            self._trouble = str(error)
            return
        except ComputeTargetException as error:
            self._trouble = error.message
            return
        finally:
            self._squeue.note_query(time.monotonic())
        self._trouble = ""
        self._listed = states.parse(printed)
        if all_users:
            self._all_users.note_query(now)
            self._others = [each for each in self._listed if each.state == "PENDING"]
        by_id = {each.id: each for each in self._listed}
        for job in self._unsettled:
            await self._compare(job, by_id)
        await self._see_off(by_id)
        async with self._queried:
            self._queried.notify_all()

    async def _see_off(self, by_id: Mapping[str, states.Listed]) -> None:
        """Forgets jobs that Slurm has ended; cancels those that stay although their agents have ended."""
        for number, job in list(self._leaving.items()):
            listed = by_id.get(number)
            if listed is None or listed.name != job.name or listed.state in states.OVER:
                del self._leaving[number]
                self._take_state(job, listed)
            elif time.monotonic() - job.leaving_since > _LEAVE_SECONDS:
                await self.scancel(job)

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
        self._take_state(job, listed)
        if job.state in states.OVER:
            await self._settle(job)
        elif job.retry_later is not None:
            await job.retry_later(job)

    async def _find_or_submit(self, job: Job) -> None:
        """Looks by its name for a job that may have been submitted; submits it if it is not in the latest list."""
        same = [each for each in self._listed if each.name == job.name]
        if same:
            job.trouble = ""
            job.note(same[-1].id)
            self._take_state(job, same[-1])
            if job.stopped:
                await self.stop(job)
        elif job.stopped:
            self._finish(job)
        elif job.script:
            await self.submit(job)

    def _take_state(self, job: Job, listed: states.Listed | None) -> None:
        if listed is not None and listed.name == job.name:
            job.state = listed.state
            job.node_list = listed.nodes or job.node_list

    async def _settle(self, job: Job) -> None:
        """Finishes a job that is over in Slurm, after the files of its agents have appeared here."""
        await self.site.refresh(job)
        if job.owner not in ("", job.id):
            # The job was submitted twice, and the other one started first.
            log.info("run %s: job %s of Slurm has it, not %s", job.nodes.run_id, job.owner, job.id)
            job.note(job.owner)
            job.state, job.missed = "", 0
            self._hurry()
            return
        if await self._was_not_launched(job):
            log.warning("run %s: the nodes did not start job %s; submitting it again", job.nodes.run_id, job.id)
            await self._submit_again(job)
            return
        deadline = time.monotonic() + (_SETTLE_SECONDS if job.began else 0.0)
        self._look_at(job)
        while not job.settled and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            await self.site.refresh(job)
            self._look_at(job)
        self._finish(job)

    async def _search(self, job: Job) -> None:
        """Handles a job that squeue does not list. If it never started, a controller that crashed has lost it."""
        state = await self.accounting.state(job.id)
        await self.site.refresh(job)
        if state in states.OVER or job.began or job.submissions >= _MOST_SUBMISSIONS or not job.script:
            job.state = state or "LOST"
            await self._settle(job)
            return
        if state:
            job.missed = 0
            return
        log.warning("run %s: Slurm lost job %s; submitting it again", job.nodes.run_id, job.id)
        await self._submit_again(job)

    async def _was_not_launched(self, job: Job) -> bool:
        """Whether Slurm itself cancelled the job, as it does with jobs that start while slurmctld starts."""
        if not states.was_not_launched(job.state, job.node_list, job.began) or job.stopped:
            return False
        if not job.script or job.submissions >= _MOST_SUBMISSIONS:
            return False
        try:
            age = states.controller_age(await self._commands.run("scontrol", "show", "config"))
        except (NoAnswer, Refused, ComputeTargetException):
            return False
        return age is not None and age < _YOUNG_SECONDS

    async def _submit_again(self, job: Job) -> None:
        job.missed, job.state, job.node_list = 0, "", ""
        await self.submit(job)

    def _finish(self, job: Job) -> None:
        job.over.set()
        job.notify()
