package chat

import "testing"

func TestImageAddressesAreReversible(t *testing.T) {
	for address, want := range map[string]Media{
		"data:image/png;base64,iVBORw0KGgo=":               {MIME: "image/png", Data: "iVBORw0KGgo="},
		"data:image/webp;charset=utf-8;base64,UklGRg==":    {MIME: "image/webp", Data: "UklGRg=="},
		"data:;base64,/9j/4AAQ":                            {MIME: "image/jpeg", Data: "/9j/4AAQ"},
		"data:;base64,R0lGODlh":                            {MIME: "image/gif", Data: "R0lGODlh"},
		"data:image/svg+xml,%3Csvg/%3E":                    {URL: "data:image/svg+xml,%3Csvg/%3E"},
		"data:image/png;base64,not base64!":                {URL: "data:image/png;base64,not base64!"},
		"https://images.example/1.png?data:x;base64,AAAA=": {URL: "https://images.example/1.png?data:x;base64,AAAA="},
		"": {},
	} {
		m := ReadImage(address)
		if m.MIME != want.MIME || m.Data != want.Data || m.URL != want.URL {
			t.Errorf("%q is %+v", address, m)
		}
		if again := ReadImage(m.Address()); again.MIME != m.MIME || again.Data != m.Data || again.URL != m.URL {
			t.Errorf("%q becomes %q", address, m.Address())
		}
	}
}
