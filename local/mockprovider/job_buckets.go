package mockprovider

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// bucketShape serves the bucket mock-bucket of Amazon S3, with requests signed for that
// service, and mock-gcs of Cloud Storage. Objects are stored under their s3:// and gs://
// addresses.
var bucketShape = &shape{name: "buckets", match: bucketMatch, authenticate: bucketKey, reject: bucketReject}

const (
	mockBucket = "/mock-bucket/"
	gcsBucket  = "/mock-gcs/"
)

func bucketMatch(x *exchange) func(*exchange) *apiError {
	path := withoutVersion(x.path)
	address := "gs:/" + path
	if strings.HasPrefix(path, mockBucket) {
		address = "s3:/" + path
	} else if !strings.HasPrefix(path, gcsBucket) {
		return nil
	}
	return func(x *exchange) *apiError { return bucketObject(x, address) }
}

func bucketKey(x *exchange) *apiError {
	if strings.HasPrefix(withoutVersion(x.path), mockBucket) {
		return awsAuthenticate(x)
	}
	return vertexAuthenticate(x)
}

func bucketReject(x *exchange, e *apiError) {
	x.w.Header()["Content-Type"] = []string{"application/xml"}
	x.w.WriteHeader(e.status)
	_, _ = x.w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + e.code + e.typ + `</Code><Message>` + e.message + `</Message></Error>`))
}

// bucketObject serves one object of a bucket.
func bucketObject(x *exchange, address string) *apiError {
	name, err := url.PathUnescape(address)
	if err != nil || x.r.Header.Get("X-Amz-Content-Sha256") == "" && strings.HasPrefix(x.r.Header.Get("Authorization"), "AWS4") {
		return badRequest("", "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	}
	q, _ := url.ParseQuery(x.query)
	upload := q.Get("uploadId")
	switch {
	case x.r.Method == "PUT" && upload == "":
		replace(x, &resource{id: name, kind: "object", content: x.body})
		return sendXML(x, "")
	case x.r.Method == "PUT":
		part, err := strconv.Atoi(q.Get("partNumber"))
		if x.s.objects.get("parts", upload) == nil || err != nil || part < 1 {
			return noUpload
		}
		keep(x, &resource{id: strconv.Itoa(part), parent: upload, kind: "object-part", content: x.body})
		x.w.Header()["ETag"] = []string{`"part` + strconv.Itoa(part) + `"`}
		return sendXML(x, "")
	case x.r.Method == "POST" && q.Has("uploads"):
		n := keep(x, &resource{id: x.newID("upload-", seedOf(name)), kind: "parts"})
		return sendXML(x, "<InitiateMultipartUploadResult><Bucket>mock-bucket</Bucket><Key>"+name+"</Key><UploadId>"+n.id+"</UploadId></InitiateMultipartUploadResult>")
	case x.r.Method == "POST" && upload != "":
		return joinParts(x, name, upload)
	case x.r.Method == "DELETE":
		x.s.objects.drop(x.s.objects.get("parts", upload))
		return sendXML(x, "")
	case x.r.Method == "GET":
		n := x.s.objects.get("object", name)
		if n == nil {
			return &apiError{status: http.StatusNotFound, code: "NoSuchKey", message: "The specified key does not exist."}
		}
		_, _ = x.w.Write(n.content)
		return nil
	}
	return &apiError{status: http.StatusMethodNotAllowed, code: "MethodNotAllowed", message: "The specified method is not allowed against this resource."}
}

var noUpload = &apiError{status: http.StatusNotFound, code: "NoSuchUpload", message: "The specified upload does not exist"}

// joinParts joins the parts of an upload. Each part except the last must have 5 MiB.
func joinParts(x *exchange, name, upload string) *apiError {
	var content []byte
	count := strings.Count(string(x.body), "<Part>")
	for part := 1; part <= count; part++ {
		n := x.s.objects.child("object-part", upload, strconv.Itoa(part))
		if n == nil || !strings.Contains(string(x.body), "part"+strconv.Itoa(part)+"&#34;") {
			return badRequest("", "InvalidPart", "One or more of the specified parts could not be found.")
		}
		if part < count && len(n.content) < 5<<20 {
			return badRequest("", "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
		}
		content = append(content, n.content...)
	}
	n := x.s.objects.get("parts", upload)
	if n == nil || count == 0 {
		return noUpload
	}
	x.s.objects.drop(n)
	replace(x, &resource{id: name, kind: "object", content: content})
	return sendXML(x, "<CompleteMultipartUploadResult><Key>"+name+"</Key></CompleteMultipartUploadResult>")
}

func sendXML(x *exchange, xml string) *apiError {
	x.w.Header()["Content-Type"] = []string{"application/xml"}
	_, _ = x.w.Write([]byte(xml))
	return nil
}
