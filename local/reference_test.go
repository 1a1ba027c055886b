package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	environment = regexp.MustCompile(`^(GATEWAY|AWS|AZURE|GCP|GOOGLE|IDENTITY|TRUSTED|BLOCK)_[A-Z0-9_]+$`)
	ticked      = regexp.MustCompile("`([^`\n]+)`")
)

// theirs are variables that are set by the platform and not by people who install the
// gateway, and variables that only tests and scripts read.
var theirs = []string{
	"AWS_LAMBDA_RUNTIME_API", "AWS_LAMBDA_FUNCTION_NAME", "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_LOG_LEVEL",
	"AWS_ENDPOINT_URL_", // the beginning of one for each service
	"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SDK_UA_APP_ID", // former names, and what names a program to AWS
	"AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_BEARER_TOKEN_BEDROCK", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", // of client libraries: gateway env prints them
	"AWS_DEFAULT_REGION", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE",
}

// The reference lists exactly the flags and the environment variables that the product reads.
//
//lane:exhaustive
func TestReferenceListsEverySetting(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../functions/docs/guides/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, configuration, _ := strings.Cut(string(raw), "\n## Flags\n")
	configuration, _, _ = strings.Cut(configuration, "\n## Headers\n")
	documented := map[string]bool{}
	for line := range strings.Lines(configuration) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), " | ")
		for _, m := range ticked.FindAllStringSubmatch(line, -1) {
			if environment.MatchString(m[1]) || strings.HasPrefix(m[1], "-") && strings.Contains(first, m[0]) {
				documented[m[1]] = true
			}
		}
	}
	read := map[string]string{}
	for _, dir := range []string{"../shared", "../functions", "."} {
		for name, file := range variables(t, dir) {
			read[name] = file
		}
	}
	if len(read) < 30 {
		t.Fatalf("only %d variables were found", len(read))
	}
	for name, file := range read {
		if !documented[name] && !slices.Contains(theirs, name) {
			t.Errorf("%s, read in %s, is not in the reference", name, file)
		}
	}
	for name := range documented {
		if environment.MatchString(name) && read[name] == "" {
			t.Errorf("the reference names %s, which nothing reads", name)
		}
	}
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`fs\.\w+Var\(&o\.\w+, "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(flags) == 0 {
		t.Fatal("no flags were found")
	}
	for _, m := range flags {
		if !documented["-"+m[1]] {
			t.Errorf("the flag -%s is not in the reference", m[1])
		}
	}
}

// variables are the names of environment variables that stand as texts in the
// code below a folder, tests apart.
func variables(t *testing.T, dir string) map[string]string {
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "test/") || strings.Contains(path, "guard/scan/") || strings.Contains(path, "migrate/") { // whose words are looked for in texts, or belong to other gateways
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if s, err := strconv.Unquote(lit.Value); err == nil && environment.MatchString(s) {
				found[s] = path
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
