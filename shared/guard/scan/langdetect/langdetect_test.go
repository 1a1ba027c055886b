package langdetect

import (
	"strings"
	"testing"
)

const texts = `eng_Latn|Where is the station and how do I get there?
spa_Latn|¿Dónde está la estación y cómo puedo llegar a ella?
por_Latn|Onde fica a estação e como eu posso chegar até ela? Não sei.
fra_Latn|Où est la gare et comment je peux y aller avec le bus ?
deu_Latn|Wo ist der Bahnhof und wie komme ich mit dem Bus dahin?
ita_Latn|Dove è la stazione e come posso arrivare con il treno?
nld_Latn|Waar is het station en hoe kom ik er met de bus?
pol_Latn|Gdzie jest dworzec i jak się tam dostać z hotelu?
swe_Latn|Var är stationen och hur kommer jag dit från hotellet?
dan_Latn|Hvor ligger stationen, og hvordan kommer jeg derhen? Jeg er blevet meget træt af at gå.
fin_Latn|Missä on asema ja miten minä pääsen sinne, kun en tiedä?
tur_Latn|İstasyon nerede ve ben oraya nasıl giderim, bu çok uzak mı?
vie_Latn|Nhà ga ở đâu và tôi có thể đến đó như thế nào?
ron_Latn|Unde este gara și cum pot să ajung la ea cu autobuzul?
ces_Latn|Kde je nádraží a jak se tam dostanu, když nemám auto? Prosím.
hun_Latn|Hol van az állomás, és hogyan jutok el oda, ha nem tudom?
cat_Latn|On és l'estació i com puc arribar amb el tren? No sé què fer, gràcies.
slv_Latn|Kje je postaja in kako lahko pridem tja, če nimam avta?
lit_Latn|Kur yra stotis ir kaip aš galiu ten nuvykti, jei nežinau?
lav_Latn|Kur ir stacija un kā es varu tur nokļūt ar autobusu?
est_Latn|Kus on jaam ja kuidas ma sinna saan, kui ma ei tea?
ind_Latn|Di mana stasiun itu dan bagaimana saya bisa ke sana karena saya tidak tahu?
fil_Latn|Nasaan ang istasyon at paano ako pupunta sa lugar na ito?
rus_Cyrl|Где находится вокзал и как мне туда попасть? Я не знаю.
ukr_Cyrl|Де знаходиться вокзал і як мені туди потрапити? Я не знаю, що це.
bul_Cyrl|Къде се намира гарата и как да стигна до нея? Аз не съм оттук.
ell_Grek|Πού είναι ο σταθμός;
heb_Hebr|איפה התחנה?
arb_Arab|أين المحطة وكيف أصل إلى هذا المكان من الفندق؟
pes_Arab|ایستگاه کجا است و من چگونه به آن برسم؟
urd_Arab|اسٹیشن کہاں ہے اور میں وہاں کیسے جا سکتا ہوں؟ یہ نہیں ہے
hin_Deva|स्टेशन कहाँ है और मैं वहाँ कैसे जा सकता हूँ?
mar_Deva|स्टेशन कुठे आहे आणि मी तिथे कसे जाऊ?
ben_Beng|স্টেশন কোথায়?
tam_Taml|நிலையம் எங்கே?
tel_Telu|స్టేషన్ ఎక్కడ?
kan_Knda|ನಿಲ್ದಾಣ ಎಲ್ಲಿದೆ?
tha_Thai|สถานีอยู่ที่ไหน
kor_Hang|역이 어디에 있나요?
jpn_Jpan|駅はどこですか
zho_Hans|车站在哪里`

func TestFigures(t *testing.T) {
	t.Parallel()
	right := 0
	lines := strings.Split(texts, "\n")
	for _, line := range lines {
		want, text, _ := strings.Cut(line, "|")
		if got, sure := Detect(text); SameLanguage(got, want) {
			right++
		} else {
			t.Logf("%s: %s, %.2f", want, got, sure)
		}
	}
	t.Logf("%d of %d", right, len(lines))
	if right*100 < len(lines)*92 {
		t.Errorf("%d of %d languages", right, len(lines))
	}
	for _, text := range []string{"", "1234", "!?", "Kowalski"} {
		if got, _ := Detect(text); got != "" {
			t.Errorf("%q is %s", text, got)
		}
	}
}

const noise = `asdfjkl qwerty zxcvbn
sdkfjh ksdjfh wkejrh
xkcdq vbnmq pqzxv
hjkl hjkl hjkl fghj
aaaaaaaa bbbbbbb
dfgdfg dfgdfgdf
qweqwe asdasd zxczxc
lkjhgf poiuyt mnbvcx
bvcxz gfdsq trwqx
ffffffffffff
zxcvzxcv asdfasdf
wrtpsdfg hjklzxcv`

const sense = `How do I bake bread at home?
Die Straße ist wegen Bauarbeiten gesperrt.
Le train arrive à huit heures.
Wszystko w porządku, proszę pana.
El perro come en la cocina.
SELECT name FROM users WHERE id = 1
func main() { fmt.Println("hello") }
the rhythm of the song and its strengths
The NASA and the FBI met
Привет, как дела?
你好吗
ok
hi
Schifffahrt auf dem Rhein
Kubernetes cluster upgrade with nginx
I work at Microsoft in Redmond
Thanks!
Bitte, danke
Angstschweiß und Herzschmerz sind deutsche Wörter
What does HTTP mean?`

func TestFiguresOfGibberish(t *testing.T) {
	t.Parallel()
	right, wrong := 0, 0
	all := strings.Split(noise, "\n")
	for _, text := range all {
		if s := Gibberish(text); s >= 0.4 {
			right++
		} else {
			t.Logf("misses %q: %.2f", text, s)
		}
	}
	for _, text := range strings.Split(sense, "\n") {
		if s := Gibberish(text); s >= 0.4 {
			wrong++
			t.Logf("%q makes sense: %.2f", text, s)
		}
	}
	t.Logf("%d of %d, %d wrong", right, len(all), wrong)
	if right*10 < len(all)*9 || wrong > 1 {
		t.Errorf("%d of %d found, %d wrong", right, len(all), wrong)
	}
}

func FuzzDetect(f *testing.F) {
	for _, line := range strings.Split(texts, "\n") {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, sure := Detect(text); sure < 0 || sure > 1 {
			t.Fatal(sure)
		}
		if s := Gibberish(text); s < 0 || s > 1 {
			t.Fatal(s)
		}
	})
}
