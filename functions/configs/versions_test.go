package configs

import "testing"

func TestVersionsReportWhetherTheConfigIsTheDefault(t *testing.T) {
	h := newInstallation(t)
	slug := h.Do("POST", "/configs", key, `{"name":"a","config":{"provider":"@a"},"isDefault":1}`).OK().Text("data", "slug")
	h.Do("PUT", "/configs/"+slug, key, `{"config":{"provider":"@b"}}`).OK()
	for _, flag := range []string{"1", "0"} {
		h.Do("PUT", "/configs/"+slug, key, `{"isDefault":`+flag+`}`).OK()
		versions := h.Do("GET", "/configs/"+slug+"/versions", key, nil).OK()
		want := h.Do("GET", "/configs/"+slug, key, nil).OK().At("data", "is_default")
		if versions.At("total") != 2.0 {
			t.Fatalf("versions: %s", versions.Body)
		}
		for _, n := range []string{"0", "1"} {
			if got := versions.At("data", n, "is_default"); got != want {
				t.Errorf("isDefault %s: version %s says %v, the config %v", flag, n, got, want)
			}
		}
	}
}
