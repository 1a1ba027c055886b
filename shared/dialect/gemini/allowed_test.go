package gemini

import "testing"

// Functions that allowedFunctionNames does not list are not offered: other providers know no
// such list, and would call them.
func TestFunctionsThatAreNotAllowedAreNotOffered(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"},{"name":"c"}]},{"googleSearch":{}}]`
	for config, want := range map[string]string{
		`{"mode":"ANY","allowedFunctionNames":["a","c"]}`: "a c ",
		`{"mode":"ANY","allowedFunctionNames":["a"]}`:     "a b c ", // the choice names it
		`{"mode":"ANY"}`: "a b c ",
	} {
		for _, body := range []string{
			`{"contents":[{"parts":[{"text":"x"}]}],` + tools + `,"toolConfig":{"functionCallingConfig":` + config + `}}`,
			`{"toolConfig":{"functionCallingConfig":` + config + `},"contents":[{"parts":[{"text":"x"}]}],` + tools + `}`,
		} {
			r, err := decodeRequest([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, tool := range r.Tools {
				if tool.ForeignType == "" {
					got += tool.Name + " "
				}
			}
			if got != want || len(r.Tools) != len(want)/2+1 {
				t.Errorf("%s: %q of %d tools, want %q", body, got, len(r.Tools), want)
			}
		}
	}
}
