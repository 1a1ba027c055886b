package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"

	"gateway/shared/host/release"
)

var versionVerb = Verb{Name: "version", Summary: "Show the version of this program", Run: version}

func version(_ context.Context, e Env) int {
	_, asJSON, err := e.Parse(Flags("version"), 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]string{
			"version": release.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		}))
	}
	fmt.Fprintf(e.Stdout, "gateway %s (%s, %s/%s)\n", release.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return ExitDone
}
