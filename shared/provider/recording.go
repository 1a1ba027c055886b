package provider

// TakesRecordingURL reports whether the host may take the address of a recording in place
// of a file. For a caller's own host that is not known.
func (t *Target) TakesRecordingURL() bool { return t.Provider.ID == "groq" || t.customHost() != "" }
