"""Mixtures of experts: which experts a token takes, where its rows go, and the sum of what comes back."""
