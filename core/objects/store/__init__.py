"""Keep the known facts about objects: their versions, indices, and logs."""
