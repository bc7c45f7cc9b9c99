"""The demo: three agents, the world they act on, and a director that kills them at telling moments."""
