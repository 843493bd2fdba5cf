"""Schema changes by column path: operations, plans, declarations. Rules are not known here."""
