package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"gateway/shared/wire/release"
)

var versionVerb = Verb{Name: "version", Summary: "Show the version of this program", Run: version}

func version(_ context.Context, e Env) int {
	_, asJSON, err := e.Parse(Flags("version"), 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	commit := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		commit = commitOf(info.Settings)
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]string{"version": release.Version, "commit": commit, "go": runtime.Version(), "platform": platform}))
	}
	if commit != "" {
		commit = ", " + commit
	}
	fmt.Fprintf(e.Stdout, "gateway %s (%s, %s%s)\n", release.Version, runtime.Version(), platform, commit)
	return ExitDone
}

// commitOf returns the commit that the program was built from, with "+changes" if the tree
// had others; "" if it was built outside a repository.
func commitOf(settings []debug.BuildSetting) string {
	commit, changed := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+changes"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + changed
}
