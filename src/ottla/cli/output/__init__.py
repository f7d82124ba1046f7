"""How results are shown: tables for people, JSON and YAML for programs."""
