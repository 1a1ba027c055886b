package secret

import (
	"strings"
	"testing"

	"gateway/shared/guard/scan/mask"
)

// chanceful returns n characters that look like chance and are always the same.
func chanceful(n int, chars string) string {
	out := make([]byte, n)
	x := uint32(2463534242)
	for i := range out {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		out[i] = chars[int(x>>8)%len(chars)]
	}
	return string(out)
}

const (
	alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hexes = "0123456789abcdef"
)

func TestKeysOfServices(t *testing.T) {
	t.Parallel()
	for _, k := range keys {
		chars := alnum
		switch k.chars {
		case caps:
			chars = upper
		case hexed:
			chars = hexes
		}
		secret := k.prefix + chanceful(k.least, chars)
		for _, text := range []string{secret, "use " + secret + " now", "KEY=" + secret + "\n", `{"key":"` + secret + `"}`, "https://x.example/" + secret + "?a=1", "(" + secret + ")."} {
			got := Find(text, Options{})
			if len(got) != 1 || got[0].Label != k.label || text[got[0].Start:got[0].End] != secret {
				t.Errorf("%s in %q: %v", k.label, text, got)
			}
		}
		short := "use " + k.prefix + chanceful(k.least-1, chars) + " now"
		if got := Find(short, Options{}); len(got) != 0 {
			t.Errorf("%s is too short: %v", short, got)
		}
	}
}

// TestFigures holds precision and recall of what has no form separate.
func TestFigures(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(chanceful(64, alnum)+"\n", 4) + "-----END RSA PRIVATE KEY-----"
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + chanceful(43, alnum)
	cases := []struct{ text, want string }{
		{"here: " + pem + " ok", PrivateKey}, {"-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(chanceful(64, alnum)+"\n", 3), PrivateKey}, {"-----BEGIN OPENSSH PRIVATE KEY-----\\n" + chanceful(200, alnum) + "\\n-----END OPENSSH PRIVATE KEY-----", PrivateKey},
		{"Authorization: Bearer " + jwt, "JWT"}, {jwt, "JWT"},
		{"postgres://admin:h7Gq2kPz@db.internal:5432/app", Password}, {"https://bob:s3cr3tW0rd9@example.com/x", Password}, {"redis://:pW9x2LmQ@cache:6379", Password},
		{`password = "` + chanceful(14, alnum) + `"`, Token}, {"DB_PASSWORD=" + chanceful(20, alnum), Token}, {`"client_secret": "` + chanceful(32, alnum) + `"`, Token}, {"my password is " + chanceful(12, alnum), Token}, {"api_key: " + chanceful(32, hexes), Token},
		{"aws_secret_access_key = " + chanceful(40, alnum+"/+"), Token}, {"AccountKey=" + chanceful(86, alnum) + "==", Token}, {"token " + chanceful(48, alnum), Token}, {chanceful(44, alnum), Token}, {"bearer " + chanceful(40, alnum), Token},
		{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", ""}, {"-----BEGIN PUBLIC KEY-----", ""}, {"the words BEGIN PRIVATE KEY in a text", ""}, {"-----BEGIN PRIVATE KEY----- and so on", ""},
		{"AKIAIOSFODNN7EXAMPLE", ""}, {"sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", ""}, {"ghp_000000000000000000000000000000000000", ""}, {"sk-learn-is-a-library-for-machine-learning-in-python-code", ""}, {"eyJhbGciOiJIUzI1NiJ9 alone", ""},
		{"postgres://localhost:5432/app", ""}, {"postgres://user:password@localhost/db", ""}, {"https://user@example.com", ""}, {"http://example.com:8080/a@b", ""}, {"redis://user:${PASS}@host", ""}, {"mail://a:b@c", ""},
		{"password = changeme123", ""}, {"password: your_password_here_1", ""}, {"the password must have 12 characters", ""}, {"token: 1234567890abcdef", ""}, {"secret = os.environ['SECRET']", ""}, {`"api_key": "${API_KEY_V2}"`, ""},
		{"commit 9fceb02d0ae598e95dc970b74767f19372d61af8", ""}, {"id 123e4567-e89b-12d3-a456-426614174000", ""}, {"md5 d41d8cd98f00b204e9800998ecf8427e", ""}, {"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", ""},
		{"github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding", ""}, {"internalConfigurationServiceFactoryBeanV2ImplementationTest", ""}, {"2024-05-17T10:30:00.000Z_backup_full_database_dump.sql", ""}, {"data:image/png;base64," + chanceful(200, alnum), ""},
		{"The quick brown fox jumps over the lazy dog", ""}, {strings.Repeat("a", 100), ""}, {strings.Repeat("1234567890", 10), ""}, {"Donaudampfschifffahrtsgesellschaftskapitaen2", ""}, {"primary_key: user_account_id_2", ""}, {"keyboard: qwertz-layout-de-105", ""}, {"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", ""},
	}
	right, wrong, missed := 0, 0, 0
	for _, c := range cases {
		got := Find(c.text, Options{Random: true})
		switch {
		case len(got) == 1 && got[0].Label == c.want:
			right++
		case c.want == "" && len(got) == 0:
		default:
			if len(got) > 0 {
				wrong++
			}
			if c.want != "" {
				missed++
			}
			t.Logf("%.80q: %v, want %q", c.text, got, c.want)
		}
	}
	precision, recall := float64(right)/float64(right+wrong), float64(right)/float64(right+missed)
	t.Logf("%d texts, precision %.2f, recall %.2f", len(cases), precision, recall)
	if precision < 0.95 || recall < 0.95 {
		t.Errorf("precision %.2f, recall %.2f; want 0.95", precision, recall)
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"AKIA" + chanceful(16, upper), "-----BEGIN PRIVATE KEY-----\n-----END ", "a://b:c@d", "password=" + chanceful(30, alnum), "eyJ.eyJ.a", "sk-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		spans := Find(text, Options{Random: true})
		for _, s := range spans {
			if s.Start < end || s.End <= s.Start || s.End > len(text) || s.Label == "" {
				t.Fatalf("%v behind %d of %d", s, end, len(text))
			}
			end = s.End
		}
		mask.Texts([]string{text}, [][]mask.Span{spans})
	})
}

func BenchmarkFind(b *testing.B) {
	for name, text := range map[string]string{"plain": strings.Repeat("The committee met on Tuesday to talk about the new budget of the school and its 3 buildings. ", 11), "addresses": strings.Repeat("a://b:", 170), "paths": strings.Repeat("ghp_/", 204), "keys": strings.Repeat("AKIA"+chanceful(16, upper)+" ", 48)} {
		for _, size := range []int{1, 100} {
			whole := strings.Repeat(text, size)
			b.Run(name+"/"+[]string{1: "1KB", 100: "100KB"}[size], func(b *testing.B) {
				b.SetBytes(int64(len(whole)))
				b.ReportAllocs()
				for b.Loop() {
					Find(whole, Options{Random: true})
				}
			})
		}
	}
}
