package mockprovider

import (
	"fmt"
	"strconv"
	"strings"
)

// falImage serves /{model}, called so that it answers at once; with sync_mode the answer
// contains the image.
func falImage(x *exchange, path string) *apiError {
	x.model = strings.TrimPrefix(path, "/")
	v, e := strictBody(x, "prompt! negative_prompt image_size aspect_ratio num_images seed guidance_scale num_inference_steps sync_mode enable_safety_checker output_format acceleration strength image_url safety_tolerance loras style")
	if e != nil {
		return e
	}
	n, e := count(v, "num_images", 4)
	if e != nil {
		return e
	}
	if size := v.get("image_size"); size.kind == object {
		if e := side(size, "width height", 1, 14142, 1); e != nil {
			return e
		}
	}
	if done, e := drawn(x, v.get("prompt").s); done {
		return e
	}
	url := "https://images.example/" + strconv.FormatInt(x.s.serial.Add(1), 10) + ".png"
	if v.get("sync_mode").yes {
		url = "data:image/png;base64," + picture
	}
	return paint(x, n, fmt.Sprintf(`{"images":%s,"timings":{"inference":0.3},"seed":7,"has_nsfw_concepts":%s,"prompt":%s}`,
		repeated(`{"url":"`+url+`","width":1024,"height":1024,"content_type":"image/png"}`, n), repeated("false", n), quoted(v.get("prompt").s)))
}
