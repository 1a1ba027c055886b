package chat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFields(t *testing.T) {
	fs := Fields{{Name: "a", Raw: []byte("1")}, {Name: "b", Raw: []byte("2")}, {Name: "c", Raw: []byte("3")}}
	if string(fs.Find("b")) != "2" || fs.Find("d") != nil {
		t.Errorf("Find: %s, %s", fs.Find("b"), fs.Find("d"))
	}
	var passed []string
	fs.Pass(func(name string, value []byte) { passed = append(passed, name+"="+string(value)) }, "c", "a", "d")
	if got := strings.Join(passed, " "); got != "a=1 c=3" {
		t.Errorf("Pass: %s", got)
	}
	var loss Loss
	fs.Report(&loss, "not accepted", "b")
	if diff := cmp.Diff([]string{"a", "c"}, loss.Paths()); diff != "" {
		t.Errorf("Report (-want +got):\n%s", diff)
	}
}
