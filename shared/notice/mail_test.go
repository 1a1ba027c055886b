package notice_test

import (
	"bytes"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"
	"time"

	"gateway/shared/notice"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Ann@Example.com": "ann@example.com", " ann@example.com ": "ann@example.com", "a+b@x.co": "a+b@x.co", "ann@localhost": "ann@localhost",
		"": "", "ann": "", "ann@": "", "@example.com": "", "Ann <ann@example.com>": "", "ann@example": "", "a@b.com, c@d.com": "",
		"ann@example.com\r\nBcc: x@y.com": "", "\"a b\"@example.com": "", "ann@.": "", strings.Repeat("a", 65) + "@example.com": "",
		"mar\u212a@example.com": "", "adm\u0130n@example.com": "", "ann@\u212aorp.com": "", "\u00c4nn@example.com": "\u00e4nn@example.com",
		"a@" + strings.Repeat("b", 260) + ".com": "",
	} {
		got, ok := notice.Address(in)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v, want %q", in, got, ok, want)
		}
	}
}

func TestAMailIsWrittenAsOthersReadIt(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line that is longer than a mail may have, ", 40) + "=20 ünï\n.\nend"
	for _, html := range []string{"", "<p>ünï " + strings.Repeat("x", 2000) + "</p>"} {
		m := notice.Mail{To: []string{"ann@example.com", "bob@example.com"}, Subject: "Einladung für dich: " + strings.Repeat("ü", 80), Text: long, HTML: html}
		raw, err := notice.Encode(&m, "gateway@localhost", "id-1", time.Unix(1_800_000_000, 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range bytes.Split(raw, []byte("\r\n")) {
			if len(line) > 998 || bytes.ContainsAny(line, "\r\n") {
				t.Errorf("a line of %d bytes: %.80q", len(line), line)
			}
		}
		msg, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject"))
		to, toErr := msg.Header.AddressList("To")
		if err != nil || toErr != nil || subject != m.Subject || len(to) != 2 || msg.Header.Get("Message-ID") != "<id-1@gateway>" {
			t.Errorf("%q %v %v %v", subject, to, err, toErr)
		}
		if texts := partsOf(t, msg); texts[0] != strings.ReplaceAll(long, "\n", "\r\n") && texts[0] != long || html != "" && texts[1] != html {
			t.Errorf("read back: %q", texts)
		}
	}
}

func partsOf(t *testing.T, msg *mail.Message) (out []string) {
	t.Helper()
	media, params, err := mime.ParseMediaType(msg.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	// multipart decodes quoted-printable; a plain mail is read as its only part.
	if media == "text/plain" {
		raw, _ := io.ReadAll(msg.Body)
		whole := "--b\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + string(raw) + "\r\n--b--\r\n"
		msg.Body, params = strings.NewReader(whole), map[string]string{"boundary": "b"}
	}
	r := multipart.NewReader(msg.Body, params["boundary"])
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
}

func TestWhatNobodyCarries(t *testing.T) {
	t.Parallel()
	good := notice.Mail{To: []string{"ann@example.com"}, Subject: "s", Text: "t"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(m *notice.Mail){
		"nobody":         func(m *notice.Mail) { m.To = nil },
		"too many":       func(m *notice.Mail) { m.To = make([]string, 51) },
		"no address":     func(m *notice.Mail) { m.To = []string{"ann"} },
		"a second line":  func(m *notice.Mail) { m.To = []string{"ann@example.com\r\nBcc: bob@example.com"} },
		"a subject of 2": func(m *notice.Mail) { m.Subject = "s\r\nBcc: bob@example.com" },
		"no text":        func(m *notice.Mail) { m.Text = "" },
	} {
		m := good
		change(&m)
		if _, err := notice.Encode(&m, "a@b.com", "i", time.Unix(0, 0)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
