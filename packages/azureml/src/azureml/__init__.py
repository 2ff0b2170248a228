"""The import names of the azureml SDK v1, for Trainmaster. An independent implementation, not Microsoft's.

`trainmaster.job.script.v1_modules` makes the modules below from one table, and loads each name when it is first used.
The other files in this folder are for editors and type checkers; they never run.
"""

from azureml._others import explain, refuse_microsofts_sdk
from trainmaster.job.script.v1_modules import install_finders

refuse_microsofts_sdk()
install_finders(__path__[0], explain)
