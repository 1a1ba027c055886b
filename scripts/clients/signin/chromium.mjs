// Chromium for the tests of signing in. The binary comes with the package, for x86-64.
process.env.AWS_LAMBDA_JS_RUNTIME ??= 'nodejs20.x'; // the package brings the libraries along
const { default: chromium } = await import('@sparticuz/chromium');
const { default: puppeteer } = await import('puppeteer-core');

export const launch = async () => puppeteer.launch({
  executablePath: await chromium.executablePath(), args: chromium.args.filter((a) => !/site-per-process|web-security|site-isolation/.test(a)), headless: 'shell',
});

// open is a page, and the complaints that it makes about its content security policy. Fields
// are filled in and buttons pressed without keys and pointer, which a page on a busy machine
// may not see before it is drawn.
export async function open(browser) {
  const page = await browser.newPage();
  page.setDefaultTimeout(120_000);
  const wrong = [];
  page.on('console', (m) => { if (/Content Security Policy|Refused/.test(m.text())) wrong.push(m.text()); });
  const click = (selector) => page.$eval(selector, (e) => e.click());
  return {
    page, wrong, click, fill: (selector, text) => page.$eval(selector, (e, v) => { e.value = v; }, text), press: (selector) => Promise.all([page.waitForNavigation(), click(selector)]),
  };
}
