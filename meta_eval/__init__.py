"""meta_eval: evidence that an AI feature works, which a stranger can recheck."""

import warnings

# Pandera imports PySpark where that is installed, and PySpark then warns of a pandas that nothing of it here touches.
warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
