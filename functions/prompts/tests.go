package prompts

import (
	"encoding/json"
	"fmt"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/prompt"
)

// testFields are the fields of the tests that a prompt stores, and of require_tests, which lets a
// version be used only after it has passed them.
func testFields() []admin.Field {
	assertion := &admin.Field{Type: admin.Object, Fields: []admin.Field{
		{Name: "type", Type: admin.String, Required: true, Enum: prompt.Assertions},
		{Name: "value", Type: admin.Any, Required: true, Doc: "A string; a schema for json_schema, a slug for guardrail, a number for max_latency_ms.",
			Form: admin.Schema{"type": []string{"string", "object", "integer"}, "example": "Hello"}},
		{Name: "on", Type: admin.String, Enum: []string{prompt.OnAnswer, prompt.OnRendered}, Doc: "The tested text; default: the response, or the rendered prompt if no model is called."},
	}}
	return []admin.Field{
		{Name: "tests", Type: admin.Array, Single: true, Max: 50, Doc: "Tests that POST /prompts/{promptId}/test runs on a version.", Absent: []any{},
			Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
				{Name: "name", Type: admin.String, Required: true, Min: 1, Max: 128},
				{Name: "variables", Type: admin.Object, Open: true, Doc: "Values for the template, by name."},
				{Name: "render_only", Type: admin.Boolean, Doc: "true calls no model."},
				{Name: "assertions", Type: admin.Array, Required: true, Min: 1, Max: 20, Of: assertion, Doc: "Assertions that must all be true."},
			}}},
		{Name: "require_tests", Single: true, Absent: false},
	}
}

// maxListedCases is how many cases a rejection names.
const maxListedCases = 10

// checkTested rejects a version that may not be published, or get a label, because the prompt has
// require_tests and the version has not passed its saved tests.
func (f *family) checkTested(c *admin.Call, it item, n int64) error {
	if !it.Form.RequireTests {
		return nil
	}
	refuse := func(format string, args ...any) error {
		return fault.Newf(fault.Conflict, "version", "version %d of this prompt may not be used yet: %s", n, fmt.Sprintf(format, args...))
	}
	if len(it.Form.Tests) == 0 {
		return refuse("the prompt requires tests and has none; save tests first")
	}
	rec, ok, err := c.Resources.Version(c.Context, it.Scope, it.Kind, it.ID, n)
	if err != nil {
		return err
	}
	if !ok {
		return fault.Newf(fault.NotFound, "version", "This prompt has no version %d; it has 1 to %d", n, it.Latest)
	}
	var version prompt.Prompt
	if err := json.Unmarshal(rec.Body, &version); err != nil {
		return fmt.Errorf("prompts: stored version of %s: %w", it.ID, err)
	}
	digest, err := prompt.Digest(&version, it.Form.Tests)
	if err != nil {
		return err
	}
	last, err := prompt.Tests{Store: c.Resources.Store()}.Last(c.Context, it.Scope, it.ID, n)
	switch run := fmt.Sprintf("run POST /prompts/%s@%d/test", it.Slug, n); {
	case err != nil:
		return err
	case last == nil:
		return refuse("its tests were not run; %s", run)
	case last.Digest != digest:
		return refuse("the tests, or the version, were changed since they were run; %s", run)
	case len(last.Failed) > 0:
		listed := last.Failed[:min(len(last.Failed), maxListedCases)]
		return refuse("%d of %d tests failed: %s", len(last.Failed), last.Cases, strings.Join(listed, ", "))
	}
	return nil
}
