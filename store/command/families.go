package command

// Families returns the tables of all data families, for NewTable. The Specs are
// made anew by every call.
func Families() [][]*Spec {
	return [][]*Spec{
		stringCommands(),
		compareCommands(),
		bitCommands(),
		listCommands(),
		setCommands(),
		keyCommands(),
		expiryCommands(),
		scanCommands(),
		renameCommands(),
		objectCommands(),
		dumpCommands(),
		databaseCommands(),
		waitCommands(),
	}
}
