package export

import "testing"

func TestFormulasAreWrittenAsText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\t=1": "'\t=1", "\n=1": "\"'\n=1\"", "\r=1": "\"'\r=1\"", " =1": "' =1", "\u00a0=1": "'\u00a0=1", "\ufeff=1": "'\ufeff=1", "\u200b=1": "'\u200b=1",
		"＝1+1": "'＝1+1", "＋1": "'＋1", "－1": "'－1", "＠a": "'＠a", "\n": "\"'\n\"",
		"": "", "a=1": "a=1", " a": " a", "gpt-4o": "gpt-4o", " ": " ", "1-1": "1-1",
	} {
		if got := string(appendCell(nil, in)); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
