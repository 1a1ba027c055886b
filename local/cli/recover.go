package cli

// recoverVerb is listed here; the command brings what it runs, because it opens the stores.
var recoverVerb = Verb{
	Name: "recover", Args: "[-data folder] [--organization id]", Words: []string{"-data", "--organization"},
	Summary: "Make a new admin key from the local files, when the admin key is lost",
}
