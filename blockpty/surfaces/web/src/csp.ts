/**
 * Lets xterm.js work under `style-src 'self'`: it adds <style> elements and style attributes, which that forbids.
 * A <style> becomes an inert element whose text goes to a constructed sheet; a style attribute is set through CSSOM.
 */
const create = document.createElement.bind(document);

function styleElement(): HTMLElement {
  const element = create("blockpty-style");
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (text: string) => sheet.replaceSync(text),
  });
  Object.defineProperty(element, "sheet", { get: () => sheet });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

document.createElement = ((name: string, options?: ElementCreationOptions) =>
  name.toLowerCase() === "style" ? styleElement() : create(name, options)) as typeof document.createElement;

const setAttribute = Element.prototype.setAttribute;
Element.prototype.setAttribute = function (name: string, value: string): void {
  if (name === "style" && this instanceof HTMLElement) this.style.cssText = value;
  else setAttribute.call(this, name, value);
};
