package body

import (
	"net/http"
	"strings"
	"unicode/utf8"
)

// officeTypes are documents that cannot be distinguished by their first bytes alone, by file
// extension.
var officeTypes = map[string]string{
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"doc":  "application/msword", "xls": "application/vnd.ms-excel",
}

// textTypes are texts that cannot be distinguished by content, by file extension.
var textTypes = map[string]string{"csv": "text/csv", "md": "text/markdown", "json": "application/json", "xml": "text/xml"}

// typeOf determines the type of a download by its bytes. The declared type and the file
// extension only distinguish formats with the same signature. why is set for a type that no
// model accepts.
func typeOf(content []byte, declared, name string) (mime, why string) {
	declared, _, _ = strings.Cut(strings.ToLower(declared), ";")
	declared = strings.TrimSpace(declared)
	end := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	seen, _, _ := strings.Cut(http.DetectContentType(content), ";")
	switch {
	case len(content) == 0:
		return "", "it is empty"
	case seen == "text/html":
		return "", "it is a web page, not a medium"
	case seen == "image/x-icon", seen == "image/vnd.microsoft.icon":
		return "", "its type is not one that models take"
	case seen == "application/ogg":
		return "audio/ogg", ""
	case seen == "audio/wave":
		return "audio/wav", ""
	case strings.HasPrefix(seen, "image/"), strings.HasPrefix(seen, "audio/"), strings.HasPrefix(seen, "video/"), seen == "application/pdf":
		return seen, ""
	case strings.HasPrefix(seen, "text/"):
		return textType(content, declared, end)
	case seen == "application/zip", len(content) > 8 && string(content[:8]) == "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
		for _, mime := range officeTypes {
			if declared == mime {
				return mime, ""
			}
		}
		if mime := officeTypes[end]; mime != "" {
			return mime, ""
		}
	case len(content) > 12 && string(content[4:8]) == "ftyp":
		if strings.HasPrefix(declared, "image/") || strings.HasPrefix(declared, "video/") || strings.HasPrefix(declared, "audio/") {
			return declared, "" // HEIC, AVIF, QuickTime, M4A: brands of one container
		}
	case len(content) > 2 && content[0] == 0xff && content[1]&0xe0 == 0xe0 && strings.HasPrefix(declared, "audio/"):
		return declared, "" // MP3 and AAC without a header
	}
	return "", "its bytes are not of a type that models take"
}

func textType(content []byte, declared, end string) (mime, why string) {
	switch {
	case !utf8.Valid(content):
		return "", "it is text that is not UTF-8"
	case declared == "image/svg+xml", end == "svg":
		return "", "it is an SVG drawing, which no model takes"
	case declared == "text/html", declared == "application/xhtml+xml":
		return "", "it is a web page, not a medium"
	case declared == "application/json", strings.HasPrefix(declared, "text/") && declared != "text/plain":
		return declared, ""
	case textTypes[end] != "":
		return textTypes[end], ""
	}
	return "text/plain", ""
}
