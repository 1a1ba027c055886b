package a2a

import (
	"encoding/json"
	"slices"
	"testing"
)

// FuzzCard parses arbitrary cards. A valid card stays valid when rewritten: with only the
// gateway's address, without disabled skills and signatures.
func FuzzCard(f *testing.F) {
	for _, card := range []string{
		`{"name":"a","url":"https://agent.example.com","skills":[{"id":"one","name":"One","tags":["x"]},{"id":"two"}],"signatures":[{}]}`,
		`{"name":"a","supportedInterfaces":[{"url":"https://agent.example.com","protocolBinding":"JSONRPC"},{"url":"x","protocolBinding":"GRPC"}]}`,
		`{"name":"a","url":"u","additionalInterfaces":[null,{"transport":"grpc"}],"skills":[null,1,{"id":3},{"id":"off"}]}`,
		`{"name":"a","url":"u","skills":{}}`, `{"name":"","url":"u"}`, `{"name":"a"}`, `[]`, `null`, ``,
		`{"name":"a","url":"u","skilLs":[{"id":"two"}],"Url":"v"}`, `{"name":"a","url":"u","skills":[{"Id":"two"},{"id":"one","ID":"two"}]}`, "{\"name\":\"\xff\",\"url\":\"u\"}",
	} {
		f.Add([]byte(card), "two")
	}
	const here = "https://gateway.example.com/v1/agent/a"
	f.Fuzz(func(t *testing.T, card []byte, off string) {
		if CheckCard(card) != nil {
			return
		}
		shown, err := Rewrite(card, CardOptions{Address: here, Agent: "https://agent.example.com", Disabled: func(skill string) bool { return skill == off }})
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckCard(shown); err != nil {
			t.Fatalf("%v: %s", err, shown)
		}
		if slices.ContainsFunc(Skills(shown), func(s Skill) bool { return s.ID == off }) {
			t.Errorf("a skill that is disabled is shown: %s", shown)
		}
		var c map[string]json.RawMessage
		if err := json.Unmarshal(shown, &c); err != nil {
			t.Fatal(err)
		}
		if c["signatures"] != nil {
			t.Error("what was signed is shown")
		}
		if url, has := c["url"]; has && text(url) != here {
			t.Errorf("url %s", url)
		}
		for _, list := range []string{"supportedInterfaces", "additionalInterfaces"} {
			var all []map[string]json.RawMessage
			if raw, has := c[list]; has && json.Unmarshal(raw, &all) != nil {
				t.Errorf("%s %s", list, raw)
			}
			for _, i := range all {
				if text(i["url"]) != here {
					t.Errorf("%s names %s", list, i["url"])
				}
			}
		}
	})
}
