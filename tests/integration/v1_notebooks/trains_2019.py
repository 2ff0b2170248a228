import json
import os

os.makedirs("outputs", exist_ok=True)
with open("outputs/line.json", "w") as file:
    json.dump({"slope": 4}, file)
