/** The style sheet of the widget, which `optlab.viz.browser.App` puts before its code. */
declare const STYLE: string;
