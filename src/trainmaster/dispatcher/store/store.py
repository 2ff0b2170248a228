"""The store: one repository per noun, over one database."""

from __future__ import annotations

from trainmaster.dispatcher.store import opening
from trainmaster.dispatcher.store.batches import Batches
from trainmaster.dispatcher.store.connection import Database
from trainmaster.dispatcher.store.curves import Curves
from trainmaster.dispatcher.store.datasets import Datasets
from trainmaster.dispatcher.store.environments import Environments
from trainmaster.dispatcher.store.experiments import Experiments
from trainmaster.dispatcher.store.field_names import FieldNames
from trainmaster.dispatcher.store.histories import Histories
from trainmaster.dispatcher.store.journals import Journals
from trainmaster.dispatcher.store.lineage import Lineage
from trainmaster.dispatcher.store.logged_model_search import LoggedModelSearch
from trainmaster.dispatcher.store.logged_models import LoggedModels
from trainmaster.dispatcher.store.metrics import Metrics
from trainmaster.dispatcher.store.mlflow_experiment_search import MlflowExperimentSearch
from trainmaster.dispatcher.store.mlflow_experiments import MlflowExperiments
from trainmaster.dispatcher.store.mlflow_rows import MlflowRows
from trainmaster.dispatcher.store.mlflow_runs import MlflowRuns
from trainmaster.dispatcher.store.mlflow_search import MlflowRunSearch
from trainmaster.dispatcher.store.model_owners import ModelOwners
from trainmaster.dispatcher.store.models import Models
from trainmaster.dispatcher.store.notifications import Notifications
from trainmaster.dispatcher.store.opening import Place
from trainmaster.dispatcher.store.places import Datastores, Facts, Targets
from trainmaster.dispatcher.store.quotas import Quotas
from trainmaster.dispatcher.store.registered_models import RegisteredModels
from trainmaster.dispatcher.store.registry_search import RegistrySearch
from trainmaster.dispatcher.store.removal import Removal
from trainmaster.dispatcher.store.retention import RetentionFacts
from trainmaster.dispatcher.store.run_addresses import RunAddresses
from trainmaster.dispatcher.store.run_inputs import RunInputs
from trainmaster.dispatcher.store.runs import Runs
from trainmaster.dispatcher.store.search import RunSearch
from trainmaster.dispatcher.store.services import Images, Services
from trainmaster.dispatcher.store.sweeps import Sweeps
from trainmaster.dispatcher.store.views import Views
from trainmaster.shared.store_version import StoreVersion


class Store:
    """A workspace's database. Any thread may read and write; one writes at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.experiments = Experiments(database)
        self.runs = Runs(database)
        self.run_addresses = RunAddresses(database)
        self.search = RunSearch(database)
        self.journals = Journals(database)
        self.metrics = Metrics(database)
        self.histories = Histories(database)
        self.batches = Batches(database)
        self.removal = Removal(database)
        self.sweeps = Sweeps(database)
        self.targets = Targets(database)
        self.datastores = Datastores(database)
        self.environments = Environments(database)
        self.datasets = Datasets(database)
        self.models = Models(database)
        self.model_owners = ModelOwners(database)
        self.registered_models = RegisteredModels(database)
        self.registry_search = RegistrySearch(database)
        self.services = Services(database)
        self.images = Images(database)
        self.facts = Facts(database)
        self.quotas = Quotas(database)
        self.views = Views(database)
        self.retention = RetentionFacts(database)
        self.notifications = Notifications(database)
        self.lineage = Lineage(database)
        self.curves = Curves(database)
        self.mlflow_experiments = MlflowExperiments(database)
        self.mlflow_rows = MlflowRows(database)
        self.mlflow_runs = MlflowRuns(database)
        self.mlflow_search = MlflowRunSearch(database)
        self.mlflow_experiment_search = MlflowExperimentSearch(database)
        self.field_names = FieldNames(database)
        self.run_inputs = RunInputs(database)
        self.logged_models = LoggedModels(database)
        self.logged_model_search = LoggedModelSearch(database)

    @classmethod
    def create(cls, place: Place) -> Store:
        """Create an empty store in a new file, or in an empty database of a server (`postgresql://...`)."""
        return cls(opening.create_database(place))

    @classmethod
    def open(cls, place: Place) -> Store:
        """Open the store in a file or at a URL. A store of an older Trainmaster is migrated."""
        return cls(opening.open_database(place))

    def check(self) -> bool:
        """Whether this process may still write. If not, the store has to be opened again."""
        return self._database.check()

    @property
    def version(self) -> int:
        """Another number after each change. It begins again with the process."""
        return self._database.version

    def publish(self, version: StoreVersion) -> None:
        """From now on other processes can read in `version` whether something has changed."""
        self._database.publish(version)

    def close(self) -> None:
        """Close the database."""
        self._database.close()
