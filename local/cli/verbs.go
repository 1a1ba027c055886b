package cli

import "slices"

// listed holds every verb in the order of the help. Serve and recover come with the Server.
// It is filled in init, because the help and the usage of each verb read it.
var listed []Verb

func init() {
	listed = []Verb{
		{Name: "serve", Args: "[flags]", Summary: "Start the gateway on this machine (the default)"},
		loginVerb,
		setupVerb,
		envVerb,
		logsVerb,
		explainVerb,
		validateVerb,
		importVerb,
		exportVerb,
		applyVerb,
		doctorVerb,
		recoverVerb,
		versionVerb,
		completionVerb,
		helpVerb,
	}
}

func find(name string) (Verb, bool) {
	i := slices.IndexFunc(listed, func(v Verb) bool { return v.Name == name })
	if i < 0 {
		return Verb{}, false
	}
	return listed[i], true
}

func names() []string {
	list := make([]string, len(listed))
	for i, v := range listed {
		list[i] = v.Name
	}
	return list
}
