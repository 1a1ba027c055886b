package onlambda_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gateway/shared/host/placement"
)

// archives are the functions that read or write segments of usage.
var archives = map[string]bool{"usage": true, "repair": true, "logs": true, "analytics": true, "exports": true}

// TestFunctionsLinkOnlyTheirOwn keeps binaries small and their permissions narrow.
func TestFunctionsLinkOnlyTheirOwn(t *testing.T) {
	_, places := placement.Families()
	out, err := exec.Command("go", "list", "-tags", "lambda.norpc", "-deps=false", "-f", `{{.ImportPath}} {{join .Deps " "}}`, "gateway/functions/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		main, deps, _ := strings.Cut(line, " ")
		name, ok := strings.CutSuffix(strings.TrimPrefix(main, "gateway/functions/"), "/lambda")
		if !ok {
			continue
		}
		seen++
		for _, d := range strings.Fields(deps) {
			for _, bad := range forbidden(name, places[name]) {
				if d == bad || strings.HasPrefix(d, bad+"/") {
					t.Errorf("%s links %s", name, d)
				}
			}
		}
	}
	if seen != len(functions(t)) {
		t.Errorf("%d functions seen, want %d", seen, len(functions(t)))
	}
}

// forbidden are packages that a function must not link.
func forbidden(name string, place placement.Place) []string {
	const sdk = "github.com/aws/aws-sdk-go-v2/"
	list := []string{sdk + "config", sdk + "service/sso", sdk + "service/ssooidc", sdk + "service/signin", sdk + "service/sts", sdk + "feature/ec2/imds", // only laptops and machines need them: package profiles
		"modernc.org", "gateway/local", "gateway/shared/store/sqlite", "gateway/shared/testkit/storetest", "gateway/functions/assembly", "net/http/pprof", "testing", "text/template", "google.golang.org/protobuf", "github.com/tiktoken-go"}
	if !archives[name] {
		list = append(list, "github.com/parquet-go/parquet-go", "gateway/shared/usage/segment")
	}
	switch {
	case place == placement.Stream, name == "batchruns": // rows of batches take the walk
		list = append(list, "gateway/shared/admin")
	case name == "logs": // it reads what clients tell of in the dialects' shapes; the walk is not linked
		list = append(list, "gateway/shared/relay/plan", "gateway/shared/relay/session")
	case name == "modelpricing": // it finds prices as requests do; the walk is not linked
		list = append(list, "gateway/shared/relay/plan", "gateway/shared/relay/session", "gateway/shared/dialect")
	case name == "docs": // its room knows the routes; what serves them is not linked
	case place == placement.Buffered:
		list = append(list, "gateway/shared/relay", "gateway/shared/dialect")
	default:
		list = append(list, "gateway/shared/relay", "gateway/shared/admin", "gateway/shared/dialect")
	}
	return list
}

// TestTheLocalGatewayLinksNoServiceOfAWS keeps its memory small: what -store aws
// needs is linked by the build tag aws.
func TestTheLocalGatewayLinksNoServiceOfAWS(t *testing.T) {
	for tags, want := range map[string]bool{"none": false, "aws": true} {
		out, err := exec.Command("go", "list", "-tags", tags, "-deps", "gateway/local").Output()
		if err != nil {
			t.Fatal(err)
		}
		deps := strings.Fields(string(out))
		for _, part := range []string{"github.com/aws/aws-sdk-go-v2/service/dynamodb", "github.com/aws/aws-sdk-go-v2/config", "github.com/johannesboyne/gofakes3", "gateway/local/cloud"} {
			if got := slices.Contains(deps, part); got != want {
				t.Errorf("tags %s: %s is linked: %v, want %v", tags, part, got, want)
			}
		}
	}
}
