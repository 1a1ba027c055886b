package oauthserver

import (
	"testing"

	"gateway/shared/fault"
)

func TestRegisterRejectsNamesOfBuiltInClients(t *testing.T) {
	t.Parallel()
	redirects := []string{"http://127.0.0.1/callback"}
	for _, name := range []string{
		BuiltIn, "the GATEWAY'S command line", "Gateway\u2019s command-line", "The gateway\u02bcs  command line!", "The gateways command line (official)", "gateway-cli", "Gateway CLI",
		"The gаteway's command line", "Тhe gatеwаy's соmmаnd linе", "The ｇａｔｅｗａｙ's command line", "The gáteway's cömmand line", "The gateway's c0mmand l1ne", "The gateway's\u200b command\u00ad line", "𝐠𝐚𝐭𝐞𝐰𝐚𝐲-𝐜𝐥𝐢",
	} {
		if _, err := Register(name, "", redirects); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q is registered: %v", name, err)
		}
		if _, err := readDocument("https://app.example/client", []byte(`{"client_id":"https://app.example/client","client_name":"`+name+`","redirect_uris":["http://127.0.0.1/callback"]}`)); err == nil {
			t.Errorf("%q is taken from a document", name)
		}
	}
	for _, name := range []string{"", "Command Line Tools", "My gateway client", "Шлюз", "Claude Code"} {
		if _, err := Register(name, "", redirects); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
